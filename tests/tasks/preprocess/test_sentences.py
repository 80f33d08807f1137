"""Sentence vectors of titles and descriptions in a Corpus; only new texts are encoded."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from storage.arrays import unit_rows
from storage.formats.corpus import OpenCorpus, open_corpus
from storage.formats.vocabulary import PLACEHOLDER
from storage.home.workspace import Workspace
from tasks.preprocess.settings import PreprocessSettings
from tasks.sentences import NoSentences, UniversalSentenceEncoder, use
from tasks.sentences.settings import SentenceSettings
from tasks.tokenize.settings import TokenizeSettings
from tests.worlds import Programme, programmes, publish_corpus

LONG = "A long story of a harbour town and the people who cook there. " * 10
PLAIN, OTHER, THIRD, FOURTH = "Two bakers open a shop.", "A detective visits.", "They bake bread.", "Rain."
SAID = {
    "Both variants": (PLAIN, OTHER),
    "Long": (LONG + "one end", LONG + "another end"),
    "Three": (PLAIN, OTHER, THIRD, FOURTH),
    "Boilerplate": ("No information available.", THIRD),
    "Nothing": (),
    "To Be Announced": (PLAIN,),
}


SUB_TITLED = [
    Programme("Sub-titled", sub_title="A storm at sea"),
    *[Programme("Sub-titled", sub_title="The lighthouse")] * 2,
    Programme("Described, too", description=PLAIN, sub_title="A storm at sea"),
]


def rows(*extra: Programme) -> list[Programme]:
    """The toy world, and titles of which something is said: each description airs once more than the next."""
    said = []
    for title, descriptions in SAID.items():
        for number, text in enumerate(descriptions or (None,)):
            said += [Programme(title, description=text)] * (9 - number)
    said += [Programme("Both variants (3/6)", description=PLAIN), Programme("Both variants S2 E4")]
    return [*programmes(), *said, *extra]


def preprocess(home: Path, *extra: Programme, **settings: object) -> tuple[OpenCorpus, dict[str, int]]:
    """Runs the stage; returns the Corpus folder, and the row of each title."""
    given = PreprocessSettings(sentences=SentenceSettings(**settings))  # type: ignore[arg-type]
    _, _, made = publish_corpus(home, rows(*extra), TokenizeSettings(), given)
    titles = pq.read_table(home / made.path / "titles.parquet", columns=["title"])["title"].to_pylist()
    return open_corpus(home / made.path), {title: row for row, title in enumerate(titles)}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[OpenCorpus, dict[str, int]]:
    return preprocess(tmp_path_factory.mktemp("home"))


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Records the texts that the encoder gets, in order."""
    texts: list[str] = []
    encode = use._UseEncoder.encode

    def counted(self: use._UseEncoder, some: Sequence[str]) -> np.ndarray:
        texts.extend(some)
        return encode(self, some)

    monkeypatch.setattr(use._UseEncoder, "encode", counted)
    return texts


def mean_of(*texts: str) -> np.ndarray:
    return unit_rows(UniversalSentenceEncoder().open().encode([text[:400] for text in texts]).sum(0)[None])[0]


def test_titles_are_encoded_without_marks(made: tuple[OpenCorpus, dict[str, int]]):
    corpus, places = made
    assert corpus.sentences.dtype == corpus.descriptions.dtype == np.float16
    assert corpus.sentences.shape == corpus.descriptions.shape == (len(corpus), 512)
    for title in ("Both variants", "To Be Announced", *list(places)[:5]):
        expected = UniversalSentenceEncoder().open().encode([title])[0]
        np.testing.assert_allclose(corpus.sentences[places[title]], expected, atol=2e-3)
    norms = np.linalg.norm(np.asarray(corpus.sentences, np.float32), axis=1)
    np.testing.assert_allclose(norms, 1, atol=1e-2)


@pytest.mark.parametrize(
    ("title", "counted"),
    [
        ("Both variants", (PLAIN, OTHER)),  # said of two raw titles, it counts once
        ("Long", (LONG,)),  # alike up to 400 characters
        ("Three", (PLAIN, OTHER, THIRD)),  # most airings first
        ("Boilerplate", (THIRD,)),
    ],
)
def test_the_vector_is_the_mean_of_selected_descriptions(
    made: tuple[OpenCorpus, dict[str, int]], title: str, counted: tuple[str, ...]
):
    corpus, places = made
    found = np.asarray(corpus.descriptions[places[title]], np.float32)
    np.testing.assert_allclose(found, mean_of(*counted), atol=2e-3)


def test_sub_titles_supplement_descriptions(tmp_path: Path):
    """The most aired one first, and none where descriptions are enough."""
    for most, counted in ((1, {"Sub-titled": ("The lighthouse",), "Described, too": (PLAIN,)}), (2, {
        "Sub-titled": ("The lighthouse", "A storm at sea"), "Described, too": (PLAIN, "A storm at sea")
    })):  # fmt: skip
        corpus, places = preprocess(tmp_path, *SUB_TITLED, descriptions=most)
        for title, texts in counted.items():
            found = np.asarray(corpus.descriptions[places[title]], np.float32)
            np.testing.assert_allclose(found, mean_of(*texts), atol=2e-3)


def test_a_title_without_a_description_has_a_zero_vector(made: tuple[OpenCorpus, dict[str, int]]):
    corpus, places = made
    described = np.asarray(corpus.descriptions).any(axis=1)
    assert corpus.split[places["To Be Announced"]] == PLACEHOLDER
    assert set(np.flatnonzero(described)) == {places[title] for title in list(SAID)[:4]}


def test_without_an_encoder_there_are_no_files(tmp_path: Path, encoded: list[str]):
    corpus, _ = preprocess(tmp_path, encoder=NoSentences())
    assert corpus.sentences.shape == corpus.descriptions.shape == (len(corpus), 0)
    assert not list(tmp_path.rglob("sentences.npy")) and not (tmp_path / "sentences").exists() and not encoded


@pytest.mark.parametrize("descriptions", [0, 1])
def test_the_number_of_descriptions_is_a_setting(tmp_path: Path, encoded: list[str], descriptions: int):
    corpus, places = preprocess(tmp_path, descriptions=descriptions)
    found = np.asarray(corpus.descriptions, np.float32)
    assert (PLAIN in encoded) is bool(descriptions) and OTHER not in encoded
    assert found.any(axis=1).sum() == 4 * descriptions and found.shape == corpus.sentences.shape
    assert bool(list(tmp_path.rglob("descriptions.npy"))) is bool(descriptions)
    if descriptions:
        np.testing.assert_allclose(found[places["Three"]], mean_of(PLAIN), atol=2e-3)


def test_a_second_night_encodes_new_texts_only(tmp_path: Path, encoded: list[str]):
    corpus, places = preprocess(tmp_path)
    assert len(encoded) == len(set(encoded)) == len(corpus) + len({PLAIN, OTHER, LONG, THIRD})
    encoded.clear()
    again, _ = preprocess(tmp_path, Programme("Never seen before", description="Nor was this."))
    assert encoded == ["Never seen before", "Nor was this."]
    _, later = preprocess(tmp_path, Programme("Never seen before", description="Nor was this."))
    assert len(encoded) == 2 and len(again) == len(corpus) + 1
    rows = [later[title] for title in places]
    np.testing.assert_array_equal(again.sentences[rows], corpus.sentences[list(places.values())])


@pytest.mark.slow
def test_a_damaged_piece_is_logged_and_encoded_again(
    tmp_path: Path, encoded: list[str], caplog: pytest.LogCaptureFixture
):
    corpus, _ = preprocess(tmp_path)
    (piece,) = (tmp_path / "sentences").rglob("*.npy")
    content = bytearray(piece.read_bytes())
    content[-9] ^= 255
    piece.write_bytes(content)
    told, count = [], len(encoded)
    encoded.clear()
    from tasks.preprocess import task

    class Logger:
        def log(self, level: int, text: str, *values: object) -> None:
            told.append(text % values)

        def info(self, text: str, *values: object) -> None:
            """Returns the summary that the stage stores."""

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(task, "get_run_logger", Logger)
        again, _ = preprocess(tmp_path)
    assert len(encoded) == count and f"{piece} is damaged: its texts are encoded again" in told
    assert told[-1].startswith("100 %  ")
    np.testing.assert_array_equal(again.sentences, corpus.sentences)
    assert not piece.exists()


def test_the_corpus_names_its_encoder_and_holds_no_description(tmp_path: Path):
    _, _, made = publish_corpus(tmp_path, rows())
    about = Workspace(tmp_path).details(made)["sentences"]
    identity = UniversalSentenceEncoder().open().identity
    assert about == {"encoder": {"name": "use"}, "descriptions": 3, "identity": identity}
    files = [file for file in (tmp_path / made.path).rglob("*") if file.is_file()]
    tables = [pq.read_table(file).to_pydict() for file in files if file.suffix == ".parquet"]
    assert PLAIN not in json.dumps(tables, default=str)
    assert not any(PLAIN.encode() in file.read_bytes() for file in files)
