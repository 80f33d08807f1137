"""Titles like this one, on the toy world: for titles of the guide and for titles no guide ever had."""

import shutil
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from storage.artifacts import Checkpoint, Corpus, Guide, Lexicon, Vocabulary
from tasks.augment import lexicon as lexicons
from tasks.neighbours import index
from tasks.neighbours.index import SearchSettings
from tasks.neighbours.search import MOST, SearchError, TitleSearch
from tests.worlds import UNSEEN, titles

CATEGORY = dict(titles())


@pytest.fixture(scope="module")
def folder(learnt: tuple[Path, Guide, Vocabulary, Corpus, Checkpoint, Lexicon], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Model folder: the lexicon's files, vectors and titles."""
    home, _, _, corpus, _, lexicon = learnt
    folder = tmp_path_factory.mktemp("model")
    for name in ("tokens.parquet", "rows.safetensors", "lexicon.json"):
        shutil.copyfile(home / lexicon.path / name, folder / name)
    table = pq.read_table(home / corpus.path / "titles.parquet")
    pq.write_table(table, folder / "titles.parquet")
    np.save(folder / "vectors.npy", lexicons.Lexicon.open(folder).embed(table["raw_title"].to_pylist()))
    return folder


@pytest.fixture(scope="module")
def search(folder: Path) -> TitleSearch:
    return TitleSearch.open(folder)


def test_neighbours_of_a_known_title(search: TitleSearch):
    title = titles()[0][0]
    found = search.similar(title, 5)
    assert len(found) == 5
    assert [CATEGORY[neighbour.title] for neighbour in found] == ["cookery"] * 5
    assert all(neighbour.categories == ["cookery"] and neighbour.channels == ["Channel One", "Channel Two"] for neighbour in found)
    cosines = [neighbour.cosine for neighbour in found]
    assert cosines == sorted(cosines, reverse=True) and all(-1 <= cosine <= 1 for cosine in cosines)
    assert all(isinstance(neighbour.cosine, float) for neighbour in found)  # JSON knows no NumPy


@pytest.mark.parametrize("form", ["{}", "{} (4/6)", "New: {}", "{} [R]", "  {}..."])
def test_the_same_show_is_left_out_in_any_form(search: TitleSearch, form: str):
    title = titles()[3][0]
    found = search.similar(form.format(title.upper() if "..." in form else title), 8)
    assert len(found) == 8 and title not in [neighbour.title for neighbour in found]


def test_titles_no_guide_ever_had(search: TitleSearch):
    for category, words in UNSEEN.items():
        found = search.similar(f"Mercury {words[0]} {words[1]}", 5)
        assert [CATEGORY[neighbour.title] for neighbour in found] == [category] * 5


def test_many_at_once_are_each_alone(search: TitleSearch):
    asked = [title for title, _ in titles()[::40]] + ["Mercury kitchenette"]
    for title, own in zip(asked, search.similar_many(asked, 3), strict=True):
        assert own == search.similar(title, 3)
    assert search.similar_many([], 3) == []


def test_more_than_there_are_gives_all_others(search: TitleSearch):
    assert len(search.similar(titles()[0][0], MOST)) == len(titles()) - 1
    assert len(search.similar("Mercury kitchenette", MOST)) == len(titles())


@pytest.mark.parametrize("k", [0, -1, MOST + 1, 2.5, True, "3", None])
def test_k_out_of_range_is_said(search: TitleSearch, k: object):
    with pytest.raises(ValueError, match=rf"k is {k!r}; it is a whole number from 1 to {MOST}"):
        search.similar(titles()[0][0], k)


@pytest.mark.parametrize("title", ["", "???", "цщъ юяэ", "日本"])
def test_a_title_of_which_nothing_is_known_is_said(search: TitleSearch, title: str):
    with pytest.raises(
        ValueError, match=rf"nothing is known of the title '{title.replace('?', '[?]')}': none of its words or letter sequences is in the guide. Try another spelling"
    ):
        search.similar(title)


def test_one_unknown_title_among_many_has_no_neighbours_and_the_others_theirs(search: TitleSearch):
    known = titles()[0][0]
    assert search.similar_many(["юяэ", known], 3) == [None, search.similar(known, 3)]
    assert search.similar_many(["юяэ"], 3) == [None]


def test_an_approximate_search_tells_its_recall(folder: Path, search: TitleSearch):
    if index.importlib.util.find_spec("faiss") is None:
        pytest.skip("faiss-cpu is not installed")
    assert search.told_recall() == ""
    every = TitleSearch.open(folder, SearchSettings(method="approximate", probes=1_000))
    assert every.told_recall(5) == "approximate search: recall 1.000 of the 5 nearest, measured on 200 titles"
    assert every.similar(titles()[0][0], 5) == search.similar(titles()[0][0], 5)
    one = TitleSearch.open(folder, SearchSettings(method="approximate", probes=1)).told_recall(20)
    assert 0 < float(one.split()[3]) < 1


def test_without_the_library_an_approximate_search_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(SearchError, match="pip install faiss-cpu"):
        TitleSearch.open(folder, SearchSettings(method="approximate"))
