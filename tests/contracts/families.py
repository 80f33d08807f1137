"""Families of strategies: every union of dataclasses in the settings."""

import dataclasses
import typing
from collections.abc import Iterator

from flows.cli.settings import find_dataclasses


def families(settings: type, path: str = "settings") -> Iterator[tuple[str, tuple[type, ...]]]:
    """Returns the path and the strategies of every union of dataclasses below a settings class."""
    hints = typing.get_type_hints(settings)
    for field in dataclasses.fields(settings):
        kinds = list(find_dataclasses(hints[field.name]))
        if len(kinds) > 1:
            yield f"{path}.{field.name}", tuple(kinds)
        for kind in kinds:
            yield from families(kind, f"{path}.{field.name}")
