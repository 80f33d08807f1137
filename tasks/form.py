"""What every settings class says of itself: a mistyped name is an error, and forms tell the bounds.

Prefect's Run form shows a field's description but not its bounds, which one then meets in the refusal. They are put
behind the description, once, here: "Dimensions of a vector (2 to 4,096)".
"""

from __future__ import annotations

from typing import Any

_SIDES = (("minimum", "at least"), ("exclusiveMinimum", "more than"), ("maximum", "at most"), ("exclusiveMaximum", "less than"))


def tell_bounds(schema: dict[str, Any]) -> None:
    """Adds the bounds of each property of a JSON schema to its description, in place."""
    for about in schema.get("properties", {}).values():
        bounds = {words: about[key] for key, words in _SIDES if key in about}
        told = ", ".join(f"{words} {value:,}" for words, value in bounds.items())
        if {"at least", "at most"} == set(bounds):
            told = f"{bounds['at least']:,} to {bounds['at most']:,}"
        if told:
            about["description"] = f"{about.get('description', '').rstrip('.')} ({told})"


FORM: Any = {"extra": "forbid", "json_schema_extra": tell_bounds}
