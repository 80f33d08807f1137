"""The command ``guidespace correct``: what a title is, as a person says; without PyTorch."""

import datetime
import difflib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, BadParameter, Option

from flows.cli.commands import HOME, NONE, AsJson, Home, app, show
from storage.errors import ExpectedError

if TYPE_CHECKING:
    from storage.home.corrections import Correction

NEAR = 5  # categories named where one is unknown
WRITING = "correction of a title"

Title = Annotated[str, Argument(metavar="TITLE", help="a title; the guide may lack it")]
CATEGORY = "what it is: a category of the model that serves, or several"
Categories = Annotated[list[str], Argument(metavar="CATEGORY ...", help=CATEGORY)]
Undo = Annotated[bool, Option("--undo", help="remove the correction of this title")]
Every = Annotated[bool, Option("--list", help="what was corrected, the latest last")]


class CorrectionError(ExpectedError, ValueError):
    """A correction that cannot be made or undone; the message says why and what to do."""


@app.command()
def correct(
    title: Title = "",
    categories: Categories = NONE,
    undo: Undo = False,
    every: Every = False,
    home: Home = HOME,
    as_json: AsJson = False,
) -> None:
    """Say what a title is. It counts at once, and the next nightly run learns it."""
    if every == bool(title) or bool(categories) == (undo or every):
        raise BadParameter("Name a title and its category, a title and --undo, or --list alone.")
    from storage.home.corrections import read_corrections
    from storage.home.workspace import Workspace

    if every:
        found = [*read_corrections(Workspace(home, create=False).home).values()]
    elif undo:
        found = [undo_correction(home, title)]
    else:
        made, known = correct_title(home, title, categories, datetime.datetime.now(datetime.UTC))
        found = [made]
        if not known:
            what = f"the model that serves has no title {title!r}; the correction counts where a guide has it"
            print(what, file=sys.stderr)
    lines = [f"no longer {one}" if undo else str(one) for one in found]
    show([one.document for one in found], as_json, lines)


def correct_title(
    home: str, title: str, categories: Sequence[str], at: datetime.datetime
) -> tuple["Correction", bool]:
    """Stores what a title is, in place of an earlier correction of its show; returns that, and whether the
    model that serves has the title.

    Raises:
        CorrectionError: The title names no programme, or the model that serves lacks a category.
        HomeError: No model serves, or the home is being written.
    """
    import pyarrow.parquet as pq

    from flows.champion import champion_folder
    from storage.catalogue.connection import Catalogue
    from storage.catalogue.corrections import store_correction
    from storage.home.corrections import Correction
    from storage.home.workspace import Workspace

    model, show_key = champion_folder(home), _show_key(title)
    known = known_categories(model)
    labels = tuple(dict.fromkeys(find_category(category, known) for category in categories))
    own = [("show_key", "==", show_key)]
    named = pq.read_table(model / "titles.parquet", columns=["title"], filters=own)["title"].to_pylist()
    made = Correction(show_key=show_key, title=(named or [title])[0], categories=labels, corrected_at=at)
    workspace = Workspace(home, create=False)
    with workspace.writing(WRITING), Catalogue.open(workspace.home) as catalogue:
        store_correction(catalogue, made)
    return made, bool(named)


def undo_correction(home: str, title: str) -> "Correction":
    """Removes the correction of a title's show, and returns it.

    Raises:
        CorrectionError: There is none.
        HomeError: The home is being written.
    """
    from storage.catalogue.connection import Catalogue
    from storage.catalogue.corrections import remove_correction
    from storage.home.workspace import Workspace

    workspace, show_key = Workspace(home, create=False), _show_key(title)
    with workspace.writing(WRITING), Catalogue.open(workspace.home) as catalogue:
        found = remove_correction(catalogue, show_key)
    if found is None:
        raise CorrectionError(f"{title!r} was not corrected; `guidespace correct --list` has what was")
    return found


def known_categories(model: Path) -> dict[str, str]:
    """Label of each category, folded, that a Model folder knows: labels, and how guides spell them."""
    import pyarrow.parquet as pq

    from storage.formats.model import read_spellings
    from tasks.preprocess.categories import fold

    labels = pq.read_table(model / "titles.parquet", columns=["labels"])["labels"].combine_chunks().flatten()
    spelled = {fold(text): label for label, text in read_spellings(model).items()}
    return spelled | {label: label for label in labels.unique().to_pylist()}


def find_category(category: str, known: Mapping[str, str]) -> str:
    """The label of a category; a CorrectionError with the nearest names where there is none."""
    from tasks.preprocess.categories import fold

    if label := known.get(fold(category)):
        return label
    near = difflib.get_close_matches(fold(category), known, n=NEAR, cutoff=0.5)
    some = f"near it are {', '.join(near)}" if near else f"some are {', '.join(sorted(known)[:NEAR])}"
    raise CorrectionError(f"the model that serves has no category {category!r}; {some}")


def _show_key(title: str) -> str:
    from tasks.text.titles import is_placeholder, parse_title

    if is_placeholder(show_key := parse_title(title).show_key):
        raise CorrectionError(f"{title!r} names no programme; expected the title of one")
    return show_key
