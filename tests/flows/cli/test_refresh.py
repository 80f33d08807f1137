"""The flow refresh and the command guide with Secret blocks of a real Prefect server."""

import datetime
import gzip
from pathlib import Path

import pytest
from prefect.blocks.system import Secret

from flows.refresh import refresh
from flows.refresh_settings import RefreshSettings
from storage.home.merged_guide import merged_file
from tasks.ingest.settings import IngestSettings
from tests.flows.command import guidespace
from tests.guide_server import serve_guide

TODAY = datetime.datetime.now(datetime.UTC)
GUIDE = f"""<tv><programme start="{TODAY:%Y%m%d}180000 +0000" stop="{TODAY:%Y%m%d}190000 +0000" channel="one">
<title>Harbour kitchen recipes</title></programme></tv>"""


@pytest.mark.slow
def test_a_missing_secret_block_does_not_affect_other_feeds(served_home: Path, prefect_api: str) -> None:
    settings = RefreshSettings(ingest=IngestSettings(private_addresses=True))
    feeds = ["secret:nothing", "secret:my-guide"]
    with serve_guide(GUIDE.encode()) as server:
        Secret(value=server.url).save("my-guide", overwrite=True)  # pyright: ignore[reportUnusedCoroutine]
        (file,) = refresh(feeds, str(served_home), settings)
        merged_file(served_home).unlink()
        options = ["--home", served_home, *(part for feed in feeds for part in ("--feed", feed))]
        done = guidespace("guide", *options, PREFECT_API_URL=prefect_api)
        asked = [request.get("if-none-match") for request in server.requests]
    assert b"Harbour kitchen recipes" in gzip.decompress(Path(file).read_bytes())
    assert done.returncode == 3 and len(asked) == 2, done.stderr
    assert done.stderr.startswith("secret:nothing: Prefect has no Secret block of that name")
    assert "1 from secret:my-guide" in done.stdout and "127.0.0.1" not in done.stdout + done.stderr
    assert b"Harbour kitchen recipes" in gzip.decompress(merged_file(served_home).read_bytes())
