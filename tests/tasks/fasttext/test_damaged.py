"""Damaged files are refused with position and reason, or read without harm and without huge allocations."""

import resource
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tasks.fasttext import FastText, FastTextError

ARGS = [
    "dim",
    "ws",
    "epoch",
    "min_count",
    "neg",
    "word_ngrams",
    "loss",
    "model",
    "bucket",
    "minn",
    "maxn",
    "lr_update_rate",
]
KINDS = ["skipgram", "supervised_ngrams", "bigrams-wide"]
KINDS += ["supervised_ngrams-output", "supervised_ngrams-pruned"]
WORDS = ["tatort", "küche", "neverseen", "日本語", "<"]


@pytest.fixture(autouse=True)
def _little_memory() -> Iterator[None]:
    """2 GiB beyond what is mapped now: a size that is believed ends in MemoryError, not in a slow machine.
    Without /proc (macOS) no limit is set."""
    if not Path("/proc/self/statm").exists():
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (2 << 30), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def sections(file: Path) -> dict[str, int]:
    """Returns where the parts of a file begin."""
    model = FastText.open(file)
    body = file.read_bytes()
    entries = 64 + 28
    after = int(model.dictionary.ends[-1]) + 10
    pruned = 0 if model.dictionary.kept_buckets is None else 8 * len(model.dictionary.kept_buckets[0])
    return {
        "args": 8,
        "sizes": 64,
        "entries": entries,
        "pruned": after,
        "input": after + pruned,
        "shape": after + pruned + 1 + (body[after + pruned]),
        "end": len(body),
    }


def attempt(body: bytes, place: Path) -> FastText | FastTextError:
    place.write_bytes(body)
    try:
        model = FastText.open(place)
        assert model.vectors(WORDS).shape == (len(WORDS), model.dim)  # reading does not crash either
        return model
    except FastTextError as error:
        found = error
    assert 0 <= found.offset <= len(body) and f"at byte {found.offset}" in str(found)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_truncation_at_any_byte(trained: dict[str, Path], tmp_path: Path, kind: str):
    body, parts = trained[kind].read_bytes(), sections(trained[kind])
    cuts = {
        0,
        1,
        3,
        4,
        7,
        *(edge + shift for edge in parts.values() for shift in (-1, 0, 1)),
        *np.random.default_rng(0).integers(0, len(body), 60).tolist(),
    }
    for cut in sorted(cut for cut in cuts if cut < len(body)):
        assert isinstance(attempt(body[:cut], tmp_path / "cut"), FastTextError), cut
    assert isinstance(attempt(body + b"\0", tmp_path / "longer"), FastTextError)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", range(len(ARGS)), ids=ARGS)
def test_every_invalid_argument_is_refused(trained: dict[str, Path], tmp_path: Path, kind: str, number: int):
    body = bytearray(trained[kind].read_bytes())
    for value in (-1, -(2**31), 2**31 - 1, 0):
        body[8 + 4 * number : 12 + 4 * number] = struct.pack("<i", value)
        found = attempt(bytes(body), tmp_path / "changed")
        if value < 0:
            assert (
                isinstance(found, FastTextError)
                and found.offset == 8 + 4 * number
                and ARGS[number] in str(found)
            )
        if ARGS[number] in ("dim", "loss", "model"):
            assert isinstance(found, FastTextError)
        if ARGS[number] == "bucket" and "pruned" not in kind:  # of a pruned file no size tells
            assert isinstance(found, FastTextError)


@pytest.mark.parametrize("kind", KINDS)
def test_every_size_of_the_dictionary(trained: dict[str, Path], tmp_path: Path, kind: str):
    original = trained[kind].read_bytes()
    for place, form in ((64, "<i"), (68, "<i"), (72, "<i"), (84, "<q")):
        (value,) = struct.unpack_from(form, original, place)
        for wrong in {value + 1, value - 1, 0, -2, 2**31 - 1, -(2**31)} - {value}:
            body = bytearray(original)
            struct.pack_into(form, body, place, wrong)
            assert isinstance(attempt(bytes(body), tmp_path / "changed"), FastTextError), (place, wrong)
    body = bytearray(original)
    struct.pack_into("<q", body, 76, -1)
    assert isinstance(attempt(bytes(body), tmp_path / "tokens"), FastTextError)


@pytest.mark.parametrize("kind", KINDS)
def test_wrong_sizes_of_matrices_are_refused(trained: dict[str, Path], tmp_path: Path, kind: str):
    original, start = trained[kind].read_bytes(), sections(trained[kind])["shape"]
    quantised = original[sections(trained[kind])["input"]] == 1
    fields = [(start, "<q"), (start + 8, "<q")] + ([(start + 16, "<i")] if quantised else [])
    for place, form in fields:
        (value,) = struct.unpack_from(form, original, place)
        most = 2**63 - 1 if form == "<q" else 2**31 - 1
        for wrong in (value + 1, value - 1, 0, -1, most, -most - 1):
            body = bytearray(original)
            struct.pack_into(form, body, place, wrong)
            assert isinstance(attempt(bytes(body), tmp_path / "changed"), FastTextError), (place, wrong)
    body = bytearray(original)
    body[sections(trained[kind])["input"]] = 7
    assert isinstance(attempt(bytes(body), tmp_path / "flag"), FastTextError)


def test_wrong_quantisers_and_pruning_are_refused(trained: dict[str, Path], tmp_path: Path):
    file = trained["supervised_ngrams-pruned"]
    original, parts = file.read_bytes(), sections(file)
    codes = struct.unpack_from("<i", original, parts["shape"] + 16)[0]
    quantiser = parts["shape"] + 20 + codes
    for field in range(4):
        for wrong in (0, -1, 2**31 - 1, struct.unpack_from("<i", original, quantiser + 4 * field)[0] + 1):
            body = bytearray(original)
            struct.pack_into("<i", body, quantiser + 4 * field, wrong)
            error = attempt(bytes(body), tmp_path / "changed")
            assert isinstance(error, FastTextError) and "quantiser" in str(error), (field, wrong)
    for field in range(2):
        for wrong in (-1, 2**31 - 1):
            body = bytearray(original)
            struct.pack_into("<i", body, parts["pruned"] + 4 * field, wrong)
            assert "an n-gram kept by pruning is" in str(attempt(bytes(body), tmp_path / "pruned"))


@pytest.mark.parametrize("kind", ["skipgram", "supervised_ngrams"])
def test_invalid_entries_of_the_dictionary_are_refused(trained: dict[str, Path], tmp_path: Path, kind: str):
    original, model = trained[kind].read_bytes(), FastText.open(trained[kind])
    end = int(model.dictionary.ends[5])
    for place, value, word in ((end + 9, 2, "type"), (end + 9, 1, "type"), (end + 8, 0xFF, "count")):
        body = bytearray(original)
        body[place] = value
        error = attempt(bytes(body), tmp_path / "changed")
        assert isinstance(error, FastTextError) and f"{word} of entry 5" in str(error)
        assert error.offset == (place if word == "type" else end + 1)
    body = bytearray(original)
    body[end] = ord("x")  # the word's end is lost: everything after is shifted
    assert isinstance(attempt(bytes(body), tmp_path / "end"), FastTextError)


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_changed_at_random(trained: dict[str, Path], tmp_path: Path, kind: str):
    original, rng = trained[kind].read_bytes(), np.random.default_rng(1)
    for _ in range(60):
        body = bytearray(original)
        for place in rng.integers(0, min(len(body), 4000), size=rng.integers(1, 4)):
            body[place] = rng.integers(0, 256)
        attempt(bytes(body), tmp_path / "changed")


OTHERS = [
    b"",
    b"\0",
    b"this is no model at all, but a text that is long enough for a header of twelve numbers",
    bytes(200),
    b"\xff" * 200,
    b"\x1f\x8b" + bytes(100),
]


@pytest.mark.parametrize("content", OTHERS)
def test_other_files(tmp_path: Path, content: bytes):
    assert isinstance(attempt(content, tmp_path / "other"), FastTextError)


def test_other_versions(trained: dict[str, Path], tmp_path: Path):
    body = bytearray(trained["skipgram"].read_bytes())
    for version in (0, 10, 13, -1):
        struct.pack_into("<i", body, 4, version)
        assert f"version is {version}; supported are 11, 12" in str(
            attempt(bytes(body), tmp_path / "changed")
        )


def test_floret_is_refused_by_name(tmp_path: Path):
    """Its header: fastText's with mode and number of hashes after maxn."""
    header = struct.pack("<2i", 793712314, 12) + struct.pack(
        "<14id", 10, 5, 5, 1, 5, 1, 2, 2, 2000, 3, 6, 2, 2, 100, 1e-4
    )
    error = attempt(header + bytes(500), tmp_path / "floret.bin")
    assert (
        isinstance(error, FastTextError) and "floret (mode 2, 2 hashes)" in str(error) and error.offset == 52
    )


def test_sparse_files_are_not_read_into_memory(trained: dict[str, Path], tmp_path: Path):
    """A sparse file of 8 GiB whose header asks for them: refused for its size, or mapped, but never read into
    memory."""
    body = bytearray(trained["skipgram"].read_bytes())
    struct.pack_into("<i", body, 8 + 4 * 8, 2**31 - 1)
    place = tmp_path / "sparse"
    place.write_bytes(bytes(body))
    assert isinstance(attempt(bytes(body), place), FastTextError)


def test_no_file(tmp_path: Path):
    with pytest.raises(FileNotFoundError):
        FastText.open(tmp_path / "none.bin")
