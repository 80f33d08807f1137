"""Which vocabulary tonight's grows from, and where its tokens have gone.

A Vocabulary's details say: ``lineage`` (settings and source code of splits and tokenizer: ids and checkpoints pass only within
one), ``ancestor`` (path and digest of the vocabulary it grew from, or None), ``compacted`` (ids were sorted anew) and the
hit rates of the hot prefix. The Corpus repeats them. Beside tokens.parquet lies ``remap.npy`` where there is an ancestor: int64, the
id of each of the ancestor's tokens in this vocabulary, -1 for a token that is gone. ``storage.tables.remap_rows`` moves a
checkpoint's rows by it; for two vocabularies that are not parent and child, ``token_remap`` (storage/catalogue/token_ids.py) makes the same array.

A token in tokens.parquet whose ``document_frequency`` is 0 is not known tonight: no training title holds it, the Corpus
has no entry of it and a Lexicon does not use its row. Its row is only kept for the night on which it returns.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json

from storage.artifacts import Vocabulary
from storage.stages import ROOT, import_closure
from storage.workspace import Workspace
from storage.yesterday import newest_ancestor
from tasks.tokenize.settings import TokenizeSettings

CODE = ("tasks/tokenize/shows.py", "tasks/tokenize/strategies.py")  # what makes a show key, a split and a token


def lineage(settings: TokenizeSettings) -> str:
    """Name of what ids, splits and checkpoints can be carried over within: settings and source code of splits and tokenizer."""
    files = set().union(*(import_closure(ROOT / file)[0] for file in CODE))
    digest = hashlib.sha256(json.dumps([dataclasses.asdict(part) for part in (settings.tokenizer, settings.splits)], sort_keys=True).encode())
    digest.update(json.dumps(settings.context).encode())
    for file in sorted(files):
        digest.update(file.relative_to(ROOT).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


def find_ancestor(workspace: Workspace, base: str, name: str) -> Vocabulary | None:
    """The vocabulary that tonight's grows from: the newest of its lineage; None for the first night.

    A night that is repeated grows from what it grew from the first time, whatever came after it, so that it is found in the
    cache and its ids stay.

    Args:
        workspace: The home.
        base: Key of guide, settings and code: what is equal in a repeated night.
        name: Of the lineage.
    """
    return newest_ancestor(workspace, Vocabulary, base, lambda details: details.get("lineage") == name)
