"""Corrections take precedence and apply to the nearest editions of the show."""

import datetime
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from storage.home.corrections import Correction
from tasks.enrich.enrich import FROM_CORRECTION, FROM_EDITION, FROM_PREDICTION
from tasks.enrich.explain import decide
from tasks.enrich.model import CategoryModel
from tasks.enrich.name_predictor import EmbeddedTitles
from tests.tasks.enrich.guides import ADDED, BAKING, NEW, programme

NOON = datetime.datetime(2025, 3, 1, 12, tzinfo=datetime.UTC)
OTHERS = [f"Harbour kitchen {word}" for word in ("bakery", "recipes", "dinner", "goals", "murders")]


def corrected(title: str, *categories: str) -> dict[str, Correction]:
    show_key = title.casefold()
    made = Correction(show_key=show_key, title=title, categories=categories, corrected_at=NOON)
    return {show_key: made}


def filled(written: bytes) -> list[str]:
    return [part.partition("</programme>")[0] for part in written.decode().split("</title>")[1:]]


def test_corrections_precede_categories_of_guides(fill: Callable) -> None:
    """The titles are one of the model and one that has another category in the guide."""
    with_category = programme("Odd (1/3)", "<category>Puzzle</category>")
    content = f"<tv>{with_category}{programme('Odd (2/3)')}{programme(BAKING)}</tv>".encode()
    both = corrected(BAKING, "crime", "football") | corrected("Odd", "crime")
    written, report = fill(content, corrections=both)
    assert filled(written) == [
        "<category>Puzzle</category>",
        "<category>CRIME</category>",
        "<category>CRIME</category><category>FOOTBALL</category>",
    ]
    assert report.filled_by_source == {FROM_CORRECTION: 2}
    assert ADDED.sub(b"", written) == ADDED.sub(b"", content)
    without, _ = fill(content)
    assert fill(content, corrections=corrected("Elsewhere", "crime"))[0] == without


def test_a_title_that_no_guide_had_is_corrected(fill: Callable) -> None:
    written, report = fill(f"<tv>{programme(NEW)}</tv>".encode(), corrections=corrected(NEW, "football"))
    assert filled(written) == ["<category>FOOTBALL</category>"]
    assert report.filled_by_source == {FROM_CORRECTION: 1}


def test_names_of_a_table_are_added_to_existing_ones(fill: Callable, tmp_path: Path) -> None:
    table = tmp_path / "names.csv"
    table.write_text("raw,genre\ncookery,Food\ncrime,Krimi\n", encoding="utf-8")
    with_category = programme(BAKING, "<category>Cookery</category>")
    content = f"<tv>{with_category}{programme(BAKING)}</tv>".encode()
    options = {"vocabulary": str(table), "every": True}
    written, _ = fill(content, corrections=corrected(BAKING, "crime"), **options)
    krimi = "<category>Krimi</category>"
    assert filled(written) == [f"<category>Cookery</category>{krimi}", krimi]
    unnamed, report = fill(content, corrections=corrected(BAKING, "football"), **options)
    assert unnamed == content and not report.filled_by_source[FROM_CORRECTION]


@pytest.mark.parametrize(("title", "of_model"), [("Northern bakery recipes", True), ("Odd penguin", False)])
def test_the_nearest_edition_follows_a_correction(fill: Callable, title: str, of_model: bool) -> None:
    """A corrected title that the model lacks has no editions."""
    editions = programme(f"{title}: {title}")
    content = f"<tv>{editions}{''.join(map(programme, [*OTHERS, NEW]))}</tv>".encode()
    before, voted = fill(content, minimum_precision=0.5)
    after, report = fill(content, corrections=corrected(title, "football"), minimum_precision=0.5)
    assert voted.filled_by_source[FROM_PREDICTION] > 0 and report.filled_by_source[FROM_EDITION] == of_model
    assert filled(after)[1:] == filled(before)[1:]
    assert filled(after)[0] == ("<category>FOOTBALL</category>" if of_model else filled(before)[0])


def test_a_correction_applies_to_its_nearest_editions(model: Path) -> None:
    """Another show with the same vector and an edition that is nearer to a voter are not affected."""
    opened = CategoryModel(model, corrected(BAKING, "football"))
    row, voter = opened.row_of[BAKING.casefold()], opened.voters[0]
    titles = [f"Celebrity {BAKING}", "Harbour kitchen murders", f"{BAKING} II"]
    queries = opened.vectors(np.array([row, row, voter]))
    requested = (
        titles,
        queries,
        opened.neighbours(EmbeddedTitles(queries, None, np.zeros(len(queries), dtype=bool))),
    )
    assert opened.corrected_editions(*requested) == {0: ("football",)}
    assert CategoryModel(model).corrected_editions(*requested) == {}


def test_explanations_of_corrected_titles_and_editions(model: Path) -> None:
    """The edition is not in the model and gets the vector of the corrected title."""
    before, after = CategoryModel(model), CategoryModel(model, corrected(BAKING, "football"))
    encoder, vector = before.encoder, before.vectors(np.array([before.row_of[BAKING.casefold()]]))
    alike: Any = SimpleNamespace(sentence_features=encoder.sentence_features, look_up=encoder.look_up)
    alike.embed_with_context = lambda *_: (vector, vector)
    before.encoder = after.encoder = alike
    for requested, by in ((BAKING, "correction"), (f"Celebrity {BAKING}", "edition")):
        decisions, voted = decide(after, requested), decide(before, requested)
        assert decisions.by == by and decisions.categories == ["football"] != voted.categories
        assert decisions.votes == voted.votes and decisions.voters == voted.voters
    assert decide(before, f"Celebrity {BAKING}").by == "prediction"
