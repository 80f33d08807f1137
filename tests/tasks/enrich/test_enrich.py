"""Sources of categories, and programmes that are skipped."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from storage.formats.model import VOTES, read_votes, write_votes
from tasks.enrich.enrich import FROM_GUIDE, FROM_HOME_GUIDES, FROM_PREDICTION, read_guide
from tasks.enrich.errors import EnrichError
from tasks.enrich.insertion import insert_elements
from tasks.enrich.model import CategoryModel
from tasks.enrich.report import report_lines
from tasks.enrich.settings import EnrichOptions
from tasks.enrich.source import open_source
from tasks.enrich.vocabulary import read_vocabulary
from tasks.ingest.settings import IngestSettings
from tests.tasks.enrich.guides import BAKING, NEW, programme

SPORT = ("goals", "striker", "penalties", "stadium", "league", "footballers")


def guide(*programmes: str) -> bytes:
    return f"<tv>{''.join(programmes)}</tv>".encode()


def test_precedence_of_sources(fill: Callable) -> None:
    written, report = fill(
        guide(
            programme("Odd (1/3)", "<category>Puzzle &amp; Co</category><category>B</category>"),
            programme("Odd (2/3)"),
            programme(BAKING),
            programme(NEW),
        )
    )
    assert report.filled_by_source == {FROM_GUIDE: 1, FROM_HOME_GUIDES: 1, FROM_PREDICTION: 1}
    assert (report.programmes, report.with_categories, report.missing) == (4, 1, 3)
    categories = [part.partition("</programme>")[0] for part in written.decode().split("</title>")[1:]]
    both = "<category>Puzzle &amp; Co</category><category>B</category>"
    assert categories == [both, both, "<category>COOKERY</category>", "<category>CRIME</category>"]


def test_the_vote_reaches_the_minimum_precision(fill: Callable) -> None:
    """Titles with words of one category are certain; titles with words of several are not."""
    sure = [programme(f"Somewhere {one} {two}") for one in SPORT for two in SPORT if one != two]
    unsure = [programme(f"{one} kitchen murderer zzyzx{one}") for one in SPORT]
    written, report = fill(guide(*sure, *unsure), minimum_precision=0.95)
    voted = report.predictions_by_level[0]
    filled_count = report.filled_by_source[FROM_PREDICTION]
    assert report.predicted_title_count == len(sure) + len(unsure) and voted.is_selected.sum() == filled_count
    assert voted.confidence[voted.is_selected].mean() >= 0.95
    assert written.count(b"<category>FOOTBALL</category>") >= len(sure) - 2
    _, generous = fill(guide(*sure, *unsure), minimum_precision=0.3)
    assert generous.filled_by_source[FROM_PREDICTION] == report.predicted_title_count >= filled_count


def test_placeholders_are_skipped(fill: Callable) -> None:
    content = guide(programme("To be announced"), programme("No information"), programme(BAKING))
    written, report = fill(content)
    assert report.placeholders == 2 and report.filled_by_source == {FROM_HOME_GUIDES: 1}
    assert written.count(b"<category>") == 1


def test_names_of_etsi_have_two_levels(fill: Callable) -> None:
    content = guide(programme(BAKING), programme(NEW), programme("Odd", "<category>Crime drama</category>"))
    written, report = fill(content, vocabulary="etsi", every=True)
    text = written.decode()
    assert "<category>Leisure hobbies</category><category>Cooking</category>" in text
    crime = "<category>Movie / Drama</category><category>Detective / Thriller</category>"
    assert text.count(crime) == 2 and "<category>Crime drama</category>" + crime in text
    assert report.extended == 1 and len(report.predictions_by_level) == 2
    again, second = fill(written, vocabulary="etsi", every=True)
    assert again == written and second.extended == 0  # what is there is not added again
    untouched, third = fill(content, vocabulary="etsi")
    assert b"<category>Crime drama</category></programme>" in untouched and third.extended == 0


def test_the_report_counts_titles_whose_name_is_written(fill: Callable) -> None:
    """There is no vote on programmes with categories, with --all or without."""
    categories = "<category>Odd</category>"
    content = guide(programme(NEW, categories), programme("Nowhere murderer detective", categories))
    for every in (True, False):
        written, report = fill(content, vocabulary="etsi", every=every)
        assert written == content and not report.filled_by_source and not report.extended
        assert report.predicted_title_count == 0
        assert [voted.is_selected.sum() for voted in report.predictions_by_level] == [0, 0]
    _, report = fill(guide(programme(NEW, categories), programme(NEW)), vocabulary="etsi", every=True)
    assert report.predicted_title_count == 1
    assert [voted.is_selected.sum() for voted in report.predictions_by_level] == [1, 1]
    assert report.filled_by_source == {FROM_PREDICTION: 1}


def test_a_custom_table(fill: Callable, tmp_path: Path) -> None:
    table = tmp_path / "mine.csv"
    table.write_text("\ufeffraw,genre\nCOOKERY,Kochen & Essen\ncrime,\nNichts,x\n", encoding="utf-8")
    written, report = fill(
        guide(programme(BAKING), programme("A", "<category>crime</category>")),
        vocabulary=str(table),
        every=True,
    )
    assert b"<category>Kochen &amp; Essen</category></programme>" in written
    assert report.filled_by_source == {FROM_HOME_GUIDES: 1} and report.extended == 0


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("a,b\n", "the first line is 'a,b'; expected the column raw and a column"),
        ("raw,b\nx\n", "line 2: 1 cells, expected 2"),
        ("raw,b\nx,\n", "no row has a name"),
        ("", "the first line is ''"),
    ],
)
def test_errors_of_tables(fill: Callable, tmp_path: Path, content: str, problem: str) -> None:
    table = tmp_path / "mine.csv"
    table.write_text(content, encoding="utf-8")
    with pytest.raises(EnrichError, match=problem):
        fill(guide(programme(BAKING)), vocabulary=str(table))


def test_options_are_checked() -> None:
    with pytest.raises(EnrichError, match=r"minimum precision 90.*above 0, at most 1"):
        EnrichOptions(minimum_precision=90)
    with pytest.raises(EnrichError, match="name another vocabulary"):
        EnrichOptions(every=True)
    with pytest.raises(EnrichError, match=r"nowhere\.csv.*expected own, etsi, or a CSV file"):
        read_vocabulary("nowhere.csv", {})


def test_a_model_of_an_older_version_is_refused(model: Path, tmp_path: Path) -> None:
    old = tmp_path / "model"
    shutil.copytree(model, old)
    (old / f"{VOTES}.parquet").unlink()
    with pytest.raises(EnrichError, match=r"older version.*guidespace nightly"):
        CategoryModel(old)


def test_no_vote_with_too_few_held_out_titles(model: Path, tmp_path: Path, fill: Callable) -> None:
    few = tmp_path / "model"
    shutil.copytree(model, few)
    votes = read_votes(few)
    assert votes is not None and len(votes.titles) == 105
    write_votes(few, type(votes)(*(field[:20] for field in votes)))
    _, report = fill(guide(programme(BAKING), programme(NEW)), few)
    assert report.filled_by_source == {FROM_HOME_GUIDES: 1}
    assert any(
        "no predictions: 20 held-out titles" in line for line in report_lines(report, EnrichOptions(), "x")
    )


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_insertion_does_not_depend_on_piece_sizes(size: int) -> None:
    content, additions = b"abcdef", [(1, b"1"), (2, b"22"), (2, b"3"), (6, b"4")]
    pieces = (content[at : at + size] for at in range(0, len(content), size))
    assert b"".join(insert_elements(pieces, iter(additions))) == b"a1b223cdef4"


def test_an_addition_after_the_end_of_the_guide_is_an_error_also_with_python_o() -> None:
    with pytest.raises(RuntimeError, match="at offset 7, but the guide has 6 bytes"):
        list(insert_elements(iter([b"abcdef"]), iter([(7, b"1")])))


@pytest.mark.parametrize("damage", ["", "<title>&nbsp;</title>"])  # the latter is read by the tolerant parser
def test_the_zone_of_the_settings_applies_to_times_and_hours(tmp_path: Path, damage: str) -> None:
    """20:00 in Paris is hour 20 in winter and in summer, with and without an offset."""
    contexts_of = []
    for offsets in (("", ""), (" +0100", " +0200")):
        times = zip(("20250301200000", "20250701200000"), offsets, strict=True)
        programmes = [programme(BAKING, damage, start="0").replace("0 +0000", f"{t}{o}", 1) for t, o in times]
        (tmp_path / "in.xml").write_bytes(guide(*programmes))
        settings, work = IngestSettings(zones=("*=Europe/Paris",)), tmp_path / "work"
        work.mkdir(exist_ok=True)
        with open_source(str(tmp_path / "in.xml"), work, settings, "Asia/Tokyo") as source:
            _, titles = read_guide(source, work, EnrichOptions())
        contexts_of.append(titles.contexts(np.arange(1)))
    assert contexts_of[0] == contexts_of[1] and {"hour:20", "weekday:6", "weekday:2"} <= set(
        contexts_of[0][0]
    )
    assert len([token for token in contexts_of[0][0] if token.startswith("hour:")]) == 1


def test_hours_are_in_the_zone_of_the_home_by_default(tmp_path: Path) -> None:
    (tmp_path / "in.xml").write_bytes(guide(programme(BAKING)))
    with open_source(str(tmp_path / "in.xml"), tmp_path, IngestSettings(), "America/Los_Angeles") as source:
        _, titles = read_guide(source, tmp_path, EnrichOptions())
    assert "hour:12" in titles.contexts(np.arange(1))[0]
