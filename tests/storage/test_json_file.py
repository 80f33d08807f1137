"""Files that are there whole or not at all."""

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from storage.json_file import copy_unless_there


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Writing more to a file fails, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_a_copy_that_fails_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty.db").write_bytes(bytes(200_000))
    with largest_file(100_000), pytest.raises(OSError, match="File too large"):
        copy_unless_there(tmp_path / "empty.db", tmp_path / "prefect.db")
    assert [file.name for file in tmp_path.iterdir()] == ["empty.db"]
    copy_unless_there(tmp_path / "empty.db", tmp_path / "prefect.db")
    assert (tmp_path / "prefect.db").read_bytes() == bytes(200_000)


def test_a_copy_leaves_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "empty.db").write_text("empty", encoding="utf-8")
    (tmp_path / "mlflow.db").write_text("of another process", encoding="utf-8")
    copy_unless_there(tmp_path / "empty.db", tmp_path / "mlflow.db")
    assert (tmp_path / "mlflow.db").read_text(encoding="utf-8") == "of another process"
    assert len(list(tmp_path.iterdir())) == 2
