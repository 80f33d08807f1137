"""What a person corrected is written first; the nearest edition of the show follows, nothing else does."""

import datetime
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from storage.home.corrections import Correction
from tasks.enrich.enrich import CORRECTED, EDITION, VOTE
from tasks.enrich.explain import decide
from tasks.enrich.model import CategoryModel
from tests.tasks.enrich.guides import ADDED, KNOWN, NEW, programme

NOON = datetime.datetime(2025, 3, 1, 12, tzinfo=datetime.UTC)
OTHERS = [f"Harbour kitchen {word}" for word in ("bakery", "recipes", "dinner", "goals", "murders")]


def corrected(title: str, *categories: str) -> dict[str, Correction]:
    show_key = title.casefold()
    made = Correction(show_key=show_key, title=title, categories=categories, corrected_at=NOON)
    return {show_key: made}


def filled(written: bytes) -> list[str]:
    return [part.partition("</programme>")[0] for part in written.decode().split("</title>")[1:]]


def test_a_correction_comes_before_what_guides_say(fill: Callable) -> None:
    """Of a title of the model, and of one that the guide itself has with another category."""
    said = programme("Odd (1/3)", "<category>Puzzle</category>")
    content = f"<tv>{said}{programme('Odd (2/3)')}{programme(KNOWN)}</tv>".encode()
    both = corrected(KNOWN, "crime", "football") | corrected("Odd", "crime")
    written, report = fill(content, corrections=both)
    assert filled(written) == [
        "<category>Puzzle</category>",
        "<category>CRIME</category>",
        "<category>CRIME</category><category>FOOTBALL</category>",
    ]
    assert report.filled == {CORRECTED: 2} and ADDED.sub(b"", written) == ADDED.sub(b"", content)
    without, _ = fill(content)
    assert fill(content, corrections=corrected("Elsewhere", "crime"))[0] == without


def test_a_title_that_no_guide_had_is_corrected(fill: Callable) -> None:
    written, report = fill(f"<tv>{programme(NEW)}</tv>".encode(), corrections=corrected(NEW, "football"))
    assert filled(written) == ["<category>FOOTBALL</category>"] and report.filled == {CORRECTED: 1}


def test_names_of_a_table_follow_also_beside_existing_ones(fill: Callable, tmp_path: Path) -> None:
    table = tmp_path / "names.csv"
    table.write_text("raw,genre\ncookery,Food\ncrime,Krimi\n", encoding="utf-8")
    said = programme(KNOWN, "<category>Cookery</category>")
    content = f"<tv>{said}{programme(KNOWN)}</tv>".encode()
    options = {"vocabulary": str(table), "every": True}
    written, _ = fill(content, corrections=corrected(KNOWN, "crime"), **options)
    krimi = "<category>Krimi</category>"
    assert filled(written) == [f"<category>Cookery</category>{krimi}", krimi]
    unnamed, report = fill(content, corrections=corrected(KNOWN, "football"), **options)
    assert unnamed == content and not report.filled[CORRECTED]


@pytest.mark.parametrize(("title", "of_model"), [("Otter evidence verdict", True), ("Odd penguin", False)])
def test_the_nearest_edition_of_the_show_follows_and_no_other_title(
    fill: Callable, title: str, of_model: bool
) -> None:
    """A corrected title that the model lacks speaks for itself alone."""
    editions = programme(f"{title}: {title}")
    content = f"<tv>{editions}{''.join(map(programme, [*OTHERS, NEW]))}</tv>".encode()
    before, voted = fill(content, minimum_precision=0.5)
    after, report = fill(content, corrections=corrected(title, "football"), minimum_precision=0.5)
    assert voted.filled[VOTE] > 0 and report.filled[EDITION] == of_model
    assert filled(after)[1:] == filled(before)[1:]
    assert filled(after)[0] == ("<category>FOOTBALL</category>" if of_model else filled(before)[0])


def test_a_slot_answers_for_editions_that_it_is_nearest_to(model: Path) -> None:
    """The same vector with another name does not follow, nor an edition that is nearer to a voter."""
    opened = CategoryModel(model, corrected(KNOWN, "football"))
    row, voter = opened.row_of[KNOWN.casefold()], opened.voters[0]
    titles = [f"Celebrity {KNOWN}", "Harbour kitchen murders", f"{KNOWN} II"]
    queries = opened.vectors(np.array([row, row, voter]))
    asked = titles, queries, opened.neighbours(queries)
    assert opened.corrected_editions(*asked) == {0: ("football",)}
    assert CategoryModel(model).corrected_editions(*asked) == {}


def test_of_one_title_a_correction_decides_for_it_and_for_its_editions(model: Path) -> None:
    """The edition, which the model lacks, has the vector of the corrected title here."""
    before, after = CategoryModel(model), CategoryModel(model, corrected(KNOWN, "football"))
    alike: Any = SimpleNamespace(embed=lambda _: before.vectors(np.array([before.row_of[KNOWN.casefold()]])))
    before.encoder = after.encoder = alike
    for asked, by in ((KNOWN, "correction"), (f"Celebrity {KNOWN}", "edition")):
        found, voted = decide(after, asked), decide(before, asked)
        assert found.by == by and found.categories == ["football"] != voted.categories
        assert found.votes == voted.votes and found.voters == voted.voters
    assert decide(before, f"Celebrity {KNOWN}").by == "vote"
