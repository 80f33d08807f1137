"""Defines the commands that fill or correct categories: ``enrich`` and ``correct``."""

import datetime
import difflib
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, BadParameter, Option

from flows.cli.exits import DONE, INCOMPLETE
from flows.cli.options import NO_VALUES, AsJson, Home, Model, Set
from flows.cli.render import show
from flows.defaults import DEFAULT_HOME
from storage.errors import ExpectedError

if TYPE_CHECKING:
    from storage.home.corrections import Correction
    from tasks.enrich.enrich import Report
    from tasks.enrich.settings import EnrichOptions
    from tasks.ingest.settings import IngestSettings

SUGGESTIONS = 5  # number of categories that the message about an unknown category suggests
LOCK_PURPOSE = "correction of a title"
GUIDE_HELP = "XMLTV file, URL, env:NAME, or - for standard input; plain or compressed"
OUT_HELP = "file to write, compressed if its name ends in .gz, .bz2 or .xz; - for standard output"
VOCABULARY_HELP = (
    "names of categories: own (as in the guide), etsi (EN 300 468), or a CSV file with the column raw and a "
    "column for each level"
)
PRECISION_HELP = (
    "minimum share of added categories that are correct [default: 0.9]; film=0.99 applies to films only (or "
    "series, sport …); with a higher share, fewer programmes get a category; can be repeated"
)
ALL_HELP = "also add names of --vocabulary to existing categories, for players that know only these names"
FOR_HELP = "also add the words that a player understands: emby, jellyfin, kodi or tvheadend; can be repeated"
EPISODES_HELP = "also add episode numbers that other airings of the same episode have"

Guide = Annotated[str, Argument(metavar="IN", help=GUIDE_HELP)]
Out = Annotated[str, Argument(metavar="OUT", help=OUT_HELP)]
Vocabulary = Annotated[str, Option("--vocabulary", metavar="own|etsi|FILE", help=VOCABULARY_HELP)]
Precision = Annotated[list[str], Option("--min-precision", metavar="P|KIND=P", help=PRECISION_HELP)]
NamesForAll = Annotated[bool, Option("--all", help=ALL_HELP)]
ForPlayers = Annotated[list[str], Option("--for", metavar="PLAYER", help=FOR_HELP)]
Mark = Annotated[bool, Option("--mark", help="add a comment after each new element")]
Episodes = Annotated[bool, Option("--episodes", help=EPISODES_HELP)]
DryRun = Annotated[bool, Option("--dry-run", help="write nothing; print counts and twenty examples")]
Title = Annotated[str, Argument(metavar="TITLE", help="a title, which need not be in the guide")]
Categories = Annotated[list[str], Argument(metavar="CATEGORY ...", help="categories of the champion model")]
UndoCorrection = Annotated[bool, Option("--undo", help="remove the correction of this title")]
ListAll = Annotated[bool, Option("--list", help="list all corrections, oldest first")]


class CorrectionError(ExpectedError, ValueError):
    """Error: a correction cannot be stored or removed. The message contains the reason and the remedy."""


def enrich(
    guide: Guide,
    out: Out = "",
    home: Home = DEFAULT_HOME,
    players: ForPlayers = NO_VALUES,
    vocabulary: Vocabulary = "own",
    precision: Precision = NO_VALUES,
    every: NamesForAll = False,
    mark: Mark = False,
    episodes: Episodes = False,
    dry_run: DryRun = False,
    model: Model = None,
    changes: Set = NO_VALUES,
) -> int:
    """Add missing categories to a guide. All other bytes remain unchanged."""
    from flows.ingest_settings import ingest_settings
    from tasks.enrich.errors import EnrichError
    from tasks.enrich.report import report_lines
    from tasks.enrich.settings import EnrichOptions, make_players, set_precision

    options = EnrichOptions(
        vocabulary=vocabulary,
        every=every,
        players=make_players(players),
        mark=mark,
        episodes=episodes,
    )
    options = set_precision(options, precision)
    if not out and not dry_run:
        raise EnrichError("OUT is missing: name a file to write, or - for standard output, or use --dry-run")
    output = "" if dry_run else out
    ingest_limits = ingest_settings(["ingest.private_addresses=true", *changes])
    report = enrich_guide(guide, output, home, options, ingest_limits, model)
    stream, name = (sys.stderr, "standard output") if output == "-" else (sys.stdout, output)
    for line in report_lines(report, options, name):
        print(line, file=stream)
    return INCOMPLETE if report.damage else DONE


def enrich_guide(
    guide: str,
    out: str,
    home: str,
    options: "EnrichOptions",
    limits: "IngestSettings",
    model: str | None = None,
) -> "Report":
    """Fills missing categories of a guide with the champion (or ``model``), and writes the result.

    Args:
        guide: XMLTV file, URL, ``env:NAME``, or ``-`` for standard input.
        out: File to write, ``-`` for standard output; '': write nothing, only count the additions.
        home: Folder of the home.
        options: Which elements are added, and the names of the categories.
        limits: Settings that limit the size and the download time of the guide.
        model: Model to use instead of the champion (see ``flows.champion.open_models``).
    """
    from flows.champion import find_champion
    from storage.home.corrections import read_corrections
    from storage.home.guides import current_guide
    from storage.home.workspace import Workspace
    from storage.home.zones import home_zone
    from tasks.enrich.enrich import open_enricher, read_guide
    from tasks.enrich.model import CategoryModel
    from tasks.enrich.output import check_output, write_guide
    from tasks.enrich.source import open_source
    from tasks.enrich.vocabulary import read_vocabulary

    if out:
        check_output(out, options)
    read_vocabulary(options.vocabulary, {})  # raises for an invalid file before the guide is read
    model_folder, workspace = find_champion(home, model).folder, Workspace(home, create=False)
    newest_guide = current_guide(workspace) if options.adds_numbers else None
    episodes = newest_guide and workspace.folder(newest_guide)
    with tempfile.TemporaryDirectory(prefix="guidespace-enrich-") as temporary_folder:
        work_folder = Path(temporary_folder)
        with open_source(guide, work_folder, limits, home_zone(home).key) as source:
            survey, guide_titles = read_guide(source, work_folder, options)
            category_model = CategoryModel(model_folder, read_corrections(workspace.home))
            enricher = open_enricher(source, survey, guide_titles, category_model, options, episodes)
            if out:
                write_guide(out, enricher)
            else:
                for _ in enricher.additions():  # counts the additions for the report
                    pass
            return enricher.report


def correct(
    title: Title = "",
    categories: Categories = NO_VALUES,
    undo: UndoCorrection = False,
    list_all: ListAll = False,
    home: Home = DEFAULT_HOME,
    model: Model = None,
    as_json: AsJson = False,
) -> None:
    """Correct the categories of a title. Takes effect immediately; the next nightly run trains on it."""
    if list_all == bool(title) or bool(categories) == (undo or list_all):
        raise BadParameter("Name a title and its category, a title and --undo, or --list alone.")
    from storage.home.corrections import read_corrections
    from storage.home.workspace import Workspace

    if list_all:
        corrections = [*read_corrections(Workspace(home, create=False).home).values()]
    elif undo:
        corrections = [undo_correction(home, title)]
    else:
        now = datetime.datetime.now(datetime.UTC)
        correction, is_in_model = correct_title(home, title, categories, now, model)
        corrections = [correction]
        if not is_in_model:
            note = f"the champion has no title {title!r}; the correction applies when a guide contains it"
            print(note, file=sys.stderr)
    lines = [f"no longer {correction}" if undo else str(correction) for correction in corrections]
    show([correction.document for correction in corrections], as_json, lines)


def correct_title(
    home: str,
    title: str,
    categories: Sequence[str],
    corrected_at: datetime.datetime,
    model: str | None = None,
) -> tuple["Correction", bool]:
    """Stores the categories that a user assigns to the show of a title. Replaces an earlier correction.

    Returns:
        The stored correction, and whether the champion model contains the title.

    Raises:
        CorrectionError: The title is a placeholder, or the champion lacks a category.
        HomeError: There is no champion, or another process writes to the home.
    """
    import pyarrow.parquet as pq

    from flows.champion import find_champion
    from storage.catalogue.connection import Catalogue
    from storage.catalogue.corrections import store_correction
    from storage.home.corrections import Correction
    from storage.home.workspace import Workspace

    folder, show_key = find_champion(home, model).folder, _show_key(title)
    spellings = read_categories(folder)
    labels = tuple(dict.fromkeys(find_category(category, spellings) for category in categories))
    show_filter = [("show_key", "==", show_key)]
    titles = pq.read_table(folder / "titles.parquet", columns=["title"], filters=show_filter)[
        "title"
    ].to_pylist()
    correction = Correction(
        show_key=show_key, title=(titles or [title])[0], categories=labels, corrected_at=corrected_at
    )
    workspace = Workspace(home, create=False)
    with workspace.writing(LOCK_PURPOSE), Catalogue.open(workspace.home) as catalogue:
        store_correction(catalogue, correction)
    return correction, bool(titles)


def undo_correction(home: str, title: str) -> "Correction":
    """Removes the correction of the show of a title, and returns the correction.

    Raises:
        CorrectionError: The show has no correction.
        HomeError: Another process writes to the home.
    """
    from storage.catalogue.connection import Catalogue
    from storage.catalogue.corrections import remove_correction
    from storage.home.workspace import Workspace

    workspace, show_key = Workspace(home, create=False), _show_key(title)
    with workspace.writing(LOCK_PURPOSE), Catalogue.open(workspace.home) as catalogue:
        correction = remove_correction(catalogue, show_key)
    if correction is None:
        raise CorrectionError(f"{title!r} was not corrected; `guidespace correct --list` lists all")
    return correction


def read_categories(model: Path) -> dict[str, str]:
    """Returns a mapping from names of categories to labels of a Model folder.

    The names are the labels themselves, and the case-folded spellings of categories in guides.
    """
    import pyarrow.parquet as pq

    from storage.formats.model import read_spellings
    from tasks.preprocess.categories import fold

    labels = pq.read_table(model / "titles.parquet", columns=["labels"])["labels"].combine_chunks().flatten()
    spellings = {fold(text): label for label, text in read_spellings(model).items()}
    return spellings | {label: label for label in labels.unique().to_pylist()}


def find_category(category: str, spellings: Mapping[str, str]) -> str:
    """Returns the label that matches a category as typed by a user.

    Raises:
        CorrectionError: The category is unknown. The message suggests similar categories.
    """
    from tasks.preprocess.categories import fold

    if label := spellings.get(fold(category)):
        return label
    close_matches = difflib.get_close_matches(fold(category), spellings, n=SUGGESTIONS, cutoff=0.5)
    suggestions = (
        f"similar categories: {', '.join(close_matches)}"
        if close_matches
        else f"some categories: {', '.join(sorted(spellings)[:SUGGESTIONS])}"
    )
    raise CorrectionError(f"the champion has no category {category!r}; {suggestions}")


def _show_key(title: str) -> str:
    """Returns the show key of a title (the title without marks). Raises CorrectionError for a placeholder."""
    from tasks.text.titles import is_placeholder, parse_title

    if is_placeholder(show_key := parse_title(title).show_key):
        raise CorrectionError(f"{title!r} is a placeholder; expected the title of a programme")
    return show_key
