"""Defines the Arrow schemas of the batches that parsers of feeds pass to the writer of the catalogue."""

import pyarrow as pa

_TEXT, _TEXTS, _TIME = pa.string(), pa.list_(pa.string()), pa.timestamp("us")


def _struct_list(*names: str) -> pa.ListType:
    """Returns the type of lists of structs, whose fields ``names`` are texts."""
    return pa.list_(pa.struct([(name, _TEXT) for name in names]))


PROGRAMMES = pa.schema(
    {"channel": _TEXT, "start": _TIME, "stop": _TIME}
    | dict.fromkeys(("stop_note", "title", "title_language", "sub_title"), _TEXT)
    | dict.fromkeys(("categories", "episode_numbers", "episode_systems"), _TEXTS)
    | {"date": _TEXT, "extra": _TEXT}  # extra is JSON (docs/catalogue.md)
)
# ``row`` in the next two schemas is the index of the programme in its batch of PROGRAMMES.
DETAILS = pa.schema(
    {"row": pa.int64(), "description": _TEXT, "translations": _struct_list("element", "text", "language")}
    | {"keywords": _TEXTS, "credits": _struct_list("role", "name", "character")}
    | dict.fromkeys(("is_new", "is_premiere", "is_live", "previously_shown"), pa.bool_())
    | {"previously_shown_at": _TIME}
    | dict.fromkeys(("star_ratings", "ratings"), _struct_list("system", "value"))
    | {"length_minutes": pa.float64(), "language": _TEXT, "original_language": _TEXT}
    | {"countries": _TEXTS, "icon": _TEXT, "urls": _TEXTS}
)
ORIGINALS = pa.schema({"row": pa.int64(), "element": _TEXT, "text": _TEXT})
CHANNELS = pa.schema(
    {"channel": _TEXT, "name": _TEXT, "names": _TEXTS, "icon": _TEXT, "lcn": _TEXT}
    | {"urls": _TEXTS, "extra": _TEXT}
)
ROOT_ATTRIBUTES = pa.schema({"attribute": _TEXT, "value": _TEXT})
REJECTS = pa.schema({"line": pa.int64(), "reason": _TEXT, "excerpt": _TEXT})
