"""Feeds that were read under another name before: what they said is found again under the one they have now.

Earlier versions kept in a source's name every query value but those of a few parameters, so a signed URL
was another source each night. When a feed comes whose name is new, the sources that are the same URL but
for secrets get its name, and so does the URL itself where the feed is now given as ``env:NAME``.
"""

from __future__ import annotations

from storage.addresses import differ_in_secrets_only, without_secrets
from storage.catalogue.connection import Catalogue
from storage.catalogue.renaming import known_sources, rename_sources
from tasks.ingest.feeds import PLAIN, is_url


def adopt_former_names(catalogue: Catalogue, url: str, name: str) -> None:
    """Renames the sources under which a URL was read, unless its name is in the catalogue.

    Args:
        url: As it is now, with its secrets.
        name: What the catalogue shall know it by.
    """
    known = [(source, *_parts(source)) for source in known_sources(catalogue)]
    if any(address == name for _, address, _ in known):
        return
    bare = without_secrets(url)
    former = {
        source: name + member
        for source, address, member in known
        if is_url(address) and without_secrets(address) == bare and differ_in_secrets_only(address, url)
    }
    if former:
        rename_sources(catalogue, former)


def _parts(source: str) -> tuple[str, str]:
    """The URL and ``!member``, if it is one of several guides in a zip."""
    address, mark, member = source.partition("!")
    return (address, mark + member) if member.lower().endswith(PLAIN) else (source, "")
