"""s3:// against a server that speaks S3 on loopback; what is missing or refused is one clear line."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from guides import guide, read, rows

from tasks.ingest.sources.download import Limits, download
from tasks.ingest.sources.feeds import FeedError
from tasks.ingest.sources.resolve import resolve
from tests import object_store


@pytest.fixture
def bucket() -> Iterator[Any]:
    """An empty bucket ``guides`` of a server of its own: the file system that it is in."""
    with object_store.bucket("guides") as system:
        yield system


@pytest.mark.slow
def test_s3_objects_patterns_and_what_has_changed(tmp_path: Path, bucket: Any) -> None:
    for name in ("b", "a"):
        bucket.pipe(f"guides/day/{name}.xml", guide(programmes=3))
    bucket.pipe("guides/day/notes.txt", b"no guide")
    assert resolve(["s3://guides/day/*.xml"]) == ["s3://guides/day/a.xml", "s3://guides/day/b.xml"]
    outcomes = read(tmp_path, "s3://guides/day/*.xml")
    assert [(outcome.source, outcome.counts.stored) for outcome in outcomes] == [
        ("s3://guides/day/a.xml", 3),
        ("s3://guides/day/b.xml", 3),
    ]
    assert all(outcome.unchanged for outcome in read(tmp_path, "s3://guides/day/*.xml"))
    bucket.pipe("guides/day/a.xml", guide(programmes=5))
    again = read(tmp_path, "s3://guides/day/*.xml")
    assert [(outcome.unchanged, outcome.counts.seen) for outcome in again] == [(False, 5), (True, 3)]
    assert rows(tmp_path, "SELECT count(*) FROM schedule WHERE source = 's3://guides/day/a.xml'") == [(5,)]
    assert list((tmp_path / "downloads").iterdir()) == []


@pytest.mark.slow
def test_s3_refuses_in_one_line(tmp_path: Path, bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket.pipe("guides/a.xml", guide(programmes=100))
    with pytest.raises(FeedError, match=r"s3://guides/none.xml: cannot be fetched \(FileNotFoundError\)"):
        read(tmp_path, "s3://guides/none.xml")
    with pytest.raises(FeedError, match="the pattern matches no file"):
        resolve(["s3://guides/none*.xml"])
    with pytest.raises(FeedError, match=r"larger than 1,000 bytes"):
        read(tmp_path, "s3://guides/a.xml", size_cap_bytes=1000)
    assert rows(tmp_path, "SELECT count(*) FROM feeds") == [(0,)]
    type(bucket).clear_instance_cache()
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    pauses: list[float] = []
    answer = download("s3://guides/a.xml", tmp_path / "f", Limits(size_cap_bytes=10_000), pause=pauses.append)
    assert (
        answer.problem.startswith("cannot be fetched (EndpointConnectionError")
        and answer.problem.endswith("4 times")
        and len(pauses) == 3
    )


@pytest.mark.parametrize("url", ["s3://guides/a.xml", "s3://guides/*.xml"])
def test_without_the_package_the_line_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    registry = sys.modules["fsspec.registry"]
    monkeypatch.setattr(registry, "_registry", {})
    monkeypatch.setattr(registry, "registry", registry._registry)
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(FeedError, match=r"Install s3fs to access S3") as caught:
        read(tmp_path, url)
    assert "\n" not in str(caught.value)
