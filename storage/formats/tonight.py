"""Format of programme recommendations: ``tonight.parquet``, with a row per viewer and programme."""

import pyarrow as pa

TONIGHT = pa.schema(
    {"viewer": pa.string(), "rank": pa.int32(), "score": pa.float32()}  # viewer: a salted hash
    | {"start": pa.timestamp("us"), "stop": pa.timestamp("us")}  # UTC
    | dict.fromkeys(("channel", "title", "sub_title", "episode"), pa.string())
    | {"categories": pa.list_(pa.string())}
    | {"also": pa.list_(pa.struct({"start": pa.timestamp("us"), "channel": pa.string()}))}
    | {"why": pa.list_(pa.struct({"title": pa.string(), "share": pa.float32(), "liked": pa.bool_()}))}
)
FILE = "tonight.parquet"
