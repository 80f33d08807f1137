"""The store of sentence vectors: adding, merging, removing, concurrent readers."""

from pathlib import Path

import numpy as np
import pytest

import storage.sentences
from storage.sentences import SentenceStore, text_keys

DIM = 4


def opened(home: Path, identity: str = "encoder 1") -> SentenceStore:
    return SentenceStore(home, identity, DIM)


def vectors(*numbers: float) -> np.ndarray:
    return np.repeat(np.array(numbers, np.float32)[:, None], DIM, axis=1)


def first(store: SentenceStore, *texts: str) -> list[float]:
    """Returns the first number of the vector of each text."""
    return store.take(text_keys(texts))[:, 0].tolist()


@pytest.fixture
def many_pieces(tmp_path: Path) -> SentenceStore:
    store = opened(tmp_path)
    for number in range(20):
        store.add(text_keys([f"text {number}", f"also {number}"]), vectors(number, -number))
    return store


def test_added_vectors_are_found_after_reopening(tmp_path: Path):
    store = opened(tmp_path)
    assert len(store) == 0 and store.has(text_keys(["a", "b"])).tolist() == [False, False]
    store.add(text_keys(["b", "a"]), vectors(2, 1))
    store.add(text_keys(["", "ü"]), vectors(0, 3))
    for found in (store, opened(tmp_path)):
        assert first(found, "a", "ü", "", "b", "a") == [1, 3, 0, 2, 1] and len(found) == 4
        assert found.has(text_keys(["a", "c", ""])).tolist() == [True, False, True]
        assert found.take(text_keys([])).shape == (0, DIM) and not found.damaged_files
    assert found.take(text_keys(["a"])).dtype == np.float16


def test_a_text_without_a_vector_is_an_error(tmp_path: Path):
    store = opened(tmp_path)
    store.add(text_keys(["a"]), vectors(1))
    with pytest.raises(KeyError, match="1 of 2 texts have no vector"):
        store.take(text_keys(["a", "zz"]))


def test_keys_depend_only_on_the_text():
    assert text_keys(["a", "b", "a"]).tolist()[0::2] == [text_keys(["a"])[0]] * 2
    assert len(set(text_keys(map(str, range(10_000))).tolist())) == 10_000
    assert text_keys(["broken \ud800 surrogate"]).shape == (1,) and text_keys([]).dtype == np.uint64


def test_each_encoder_has_a_separate_store(tmp_path: Path):
    one, other = opened(tmp_path), opened(tmp_path, "encoder 2")
    one.add(text_keys(["a"]), vectors(1))
    other.add(text_keys(["a"]), vectors(2))
    assert first(opened(tmp_path), "a") == [1] and first(opened(tmp_path, "encoder 2"), "a") == [2]
    assert (one.folder / "encoder.txt").read_text(encoding="utf-8") == "encoder 1\n"


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty"])
def test_a_damaged_piece_is_named_and_its_texts_are_new(tmp_path: Path, damage: str):
    store = opened(tmp_path)
    store.add(text_keys(["a"]), vectors(1))
    store.add(text_keys(["b"]), vectors(2))
    file = sorted(store.folder.glob("*.npy"))[0]
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes({"cut": content[:-3], "flipped": content, "empty": b""}[damage])
    found = opened(tmp_path)
    assert found.damaged_files == [file] and first(found, "b") == [2]
    assert found.has(text_keys(["a", "b"])).tolist() == [False, True]
    found.add(text_keys(["a"]), vectors(1))
    found.compact(text_keys(["a", "b"]))
    assert (
        not file.exists()
        and not opened(tmp_path).damaged_files
        and first(opened(tmp_path), "a", "b") == [1, 2]
    )


def test_a_kill_leaves_the_pieces_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    store = opened(tmp_path)
    store.add(text_keys(["a"]), vectors(1))
    with monkeypatch.context() as patch:

        def killed(*arguments: object) -> None:
            raise KeyboardInterrupt

        patch.setattr("storage.sentences.os.replace", killed)
        with pytest.raises(KeyboardInterrupt):
            store.add(text_keys(["b"]), vectors(2))
    assert list(store.folder.glob("*.tmp"))
    found = opened(tmp_path)
    assert len(found) == 1 and first(found, "a") == [1] and not found.damaged_files
    found.compact(text_keys(["a"]))
    assert not list(store.folder.glob("*.tmp"))


def test_small_pieces_are_merged(many_pieces: SentenceStore):
    texts = [f"{word} {number}" for word in ("text", "also") for number in range(20)]
    many_pieces.compact(text_keys(texts))
    assert len(list(many_pieces.folder.glob("*.npy"))) == 1
    for store in (many_pieces, opened(many_pieces.folder.parents[1])):
        assert first(store, *texts) == [*range(20), *(-number for number in range(20))]


def test_full_pieces_stay_as_they_are(many_pieces: SentenceStore, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(storage.sentences, "SEGMENT_ROWS", 8)
    used = text_keys([f"{word} {number}" for word in ("text", "also") for number in range(20)])
    times = lambda: {file: file.stat().st_mtime_ns for file in many_pieces.folder.glob("*.npy")}  # noqa: E731
    many_pieces.compact(used)
    files = times()
    assert len(files) == 5
    many_pieces.add(text_keys(["new"]), vectors(7))
    many_pieces.compact(used)
    assert files.items() <= times().items() and len(times()) == 6


@pytest.mark.parametrize(("in_use", "kept"), [(10, 40), (9, 9), (0, 0)])
def test_unused_rows_are_removed_if_they_are_the_majority(many_pieces: SentenceStore, in_use: int, kept: int):
    used = [f"text {number}" for number in range(in_use)]
    many_pieces.compact(text_keys([*used, *used]))
    assert len(many_pieces) == len(opened(many_pieces.folder.parents[1])) == kept
    assert first(many_pieces, *used) == list(range(in_use))


def test_a_reader_continues_during_a_compaction(many_pieces: SentenceStore):
    reader = opened(many_pieces.folder.parents[1])
    many_pieces.compact(text_keys([f"text {number}" for number in range(20)]))
    assert first(reader, "text 3", "also 19") == [3, -19]


def test_a_piece_of_another_length_is_no_vector_of_this_encoder(tmp_path: Path):
    opened(tmp_path).add(text_keys(["a"]), vectors(1))
    found = SentenceStore(tmp_path, "encoder 1", DIM + 1)
    assert len(found) == 0 and len(found.damaged_files) == 1
