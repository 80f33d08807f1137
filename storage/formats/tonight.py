"""Defines the schema of the recommendations, ``tonight.parquet``: one row per viewer and programme."""

import pyarrow as pa

RECOMMENDATIONS = pa.schema(
    {"viewer": pa.string(), "rank": pa.int32(), "score": pa.float32()}  # viewer: a salted hash
    | {"start": pa.timestamp("us"), "stop": pa.timestamp("us")}  # UTC
    | dict.fromkeys(("channel", "title", "sub_title", "episode"), pa.string())
    | {"categories": pa.list_(pa.string())}
    | dict.fromkeys(("is_new", "is_premiere", "is_repeat"), pa.bool_())
    | {"age": pa.int32(), "ratings": pa.list_(pa.string())}  # age: minimum age in years, NULL if unknown
    | {"also": pa.list_(pa.struct({"start": pa.timestamp("us"), "channel": pa.string()}))}
    | {"why": pa.list_(pa.struct({"title": pa.string(), "share": pa.float32(), "liked": pa.bool_()}))}
)
FILE = "tonight.parquet"
