"""The commands of ``guidespace``: their arguments, and what each prints.

Imports stand inside the functions, so that a command imports only what it needs and --help answers at once.
"""

import datetime
import json
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, BadParameter, Option, Typer

from flows.cli.instants import read_instant

NONE: list[Any] = []
HOME = "guidespace-home"

app = Typer(add_completion=False, rich_markup_mode=None)

Home = Annotated[str, Option(envvar="GUIDESPACE_HOME", help="folder that holds everything a run writes")]
AsJson = Annotated[bool, Option("--json", help="print JSON, for other programs")]
FEEDS = "XMLTV file, glob, folder, URL (http, s3 …), or env:NAME for one in a variable; plain or compressed"
Feeds = Annotated[list[str], Option("--feed", metavar="FEED ...", help=FEEDS)]
SETTINGS = "change settings, such as ingest.workers=4 or train.epochs=5"
Set = Annotated[list[str], Option("--set", metavar="NAME=VALUE ...", help=SETTINGS)]
Preset = Annotated[Literal["smoke", "laptop", "gpu"], Option(help="settings to start from")]
AS_OF = "run on what was known at the end of a day (YYYY-MM-DD) or at an ISO instant, without --feed too"
From = Annotated[datetime.datetime, Option("--from", formats=["%Y-%m-%d"], metavar="YYYY-MM-DD")]
To = Annotated[datetime.datetime, Option("--to", formats=["%Y-%m-%d"], metavar="YYYY-MM-DD")]
Number = Annotated[int, Option("-k", help="how many")]
SEARCH = "compare with all titles, or with those of the nearest cells, with the recall; auto: by their number"
Method = Annotated[Literal["auto", "exact", "approximate"], Option(help=SEARCH)]
MODEL = "registered model in MLflow, for one of another home [default: the home's]"
Model = Annotated[str | None, Option(metavar="NAME", help=MODEL)]
Description = Annotated[str, Option(help="what the programme is about, for one that is not in the guide")]
Channel = Annotated[str, Option(metavar="NAME", help="a channel of the guide that airs it: name or XMLTV id")]
Hour = Annotated[int | None, Option(metavar="H", help="local hour at which it airs, 0 to 23")]
Left = Annotated[str, Argument(metavar="A", help="a title; beside another its words are left out in turn")]
Right = Annotated[str | None, Argument(metavar="B", help="another title; without it, who decided on A")]
Minimum = Annotated[float, Option(metavar="COSINE", help="least cosine of a pair, 0.8 to 1")]
QUERY = "SQL over programmes, titles, clusters, neighbours and others (docs/sql.md)"
VALUE = "value of $NAME in the query; may be repeated"
FORMS = "of titles: labels, word2vec, parquet; of words: fasttext (with n-grams), vec, glove, word2vec-binary"
BUCKETS = "fasttext: hash buckets to distil into, for a smaller file [default: the model's own]"
WORDS = "a word; - reads them from standard input, one a line"
WordList = Annotated[list[str], Argument(metavar="WORD ...", help=WORDS)]
VECTORS = "fastText .bin or .ftz, compact store, .vec, word2vec or GloVe file"
BELOW = "only this one and those below it, such as train or train.optimizer"
AsOf = Annotated[datetime.datetime | None, Option(parser=read_instant, metavar="DATE", help=AS_OF)]
Query = Annotated[str | None, Argument(help=QUERY)]
Values = Annotated[list[str], Option("--with", metavar="NAME=VALUE", help=VALUE)]
Out = Annotated[Path, Argument(help="file to write; a folder for labels")]
Form = Literal["labels", "word2vec", "parquet", "fasttext", "vec", "glove", "word2vec-binary"]
Format = Annotated[Form, Option("--format", help=FORMS)]
Buckets = Annotated[int | None, Option(help=BUCKETS)]
Promote = Annotated[bool, Option("--promote", help="make its model the champion, whatever the gate says")]
NgramModel = Annotated[Path, Argument(metavar="MODEL", help="fastText .bin or .ftz")]
VectorModel = Annotated[Path, Argument(metavar="MODEL", help=VECTORS)]
Below = Annotated[str, Argument(metavar="NAME", help=BELOW)]


def show(document: Any, as_json: bool, lines: Iterable[str]) -> None:
    """Prints a document as JSON, or its lines."""
    for line in [json.dumps(document, ensure_ascii=False, indent=1)] if as_json else lines:
        print(line)


def count_feeds(feeds: list[str]) -> str:
    """How many feeds there are, in words."""
    return f"{len(feeds)} feed{'s' if len(feeds) != 1 else ''}"


@app.command()
def nightly(
    home: Home = HOME,
    feeds: Feeds = NONE,
    preset: Preset = "laptop",
    changes: Set = NONE,
    as_of: AsOf = None,
    promote: Promote = False,
) -> int:
    """Read a guide, learn its space, score it and publish it."""
    changes = [*changes, "publish.promote=always"] if promote else changes
    print(f"GuideSpace: nightly run of {count_feeds(feeds)} into {home}, preset {preset}", flush=True)
    from flows.server import start_prefect
    from tasks.ingest.check import check_feeds
    from tasks.ingest.settings import IngestSettings

    if feeds or not as_of:
        check_feeds(feeds, IngestSettings())
    starting = None if changes else start_prefect(home)  # settings are checked before anything starts
    from flows.cli.progress import run
    from flows.settings import choose
    from storage.home.zones import home_zone, in_zone

    settings = choose(preset, changes, feeds)
    parameters = {"settings": settings, "as_of": as_of and in_zone(as_of, home_zone(home))}
    return run("nightly", feeds, home, parameters, starting or start_prefect(home))


@app.command()
def rollback(home: Home = HOME) -> None:
    """Let the model serve that served before. The gate then leaves out the one that is taken back."""
    from storage.home.workspace import Workspace
    from storage.tracking import Registry

    registry = Registry(Workspace(home, create=False).home)
    before, now = registry.rollback(at=datetime.datetime.now(datetime.UTC))
    print(f"{registry.name}: version {now} serves, version {before} no longer")


@app.command()
def ingest(feeds: Feeds, home: Home = HOME, changes: Set = NONE) -> int:
    """Read guides into the catalogue; learn nothing. The snapshot is published."""
    print(f"GuideSpace: reading {count_feeds(feeds)} into {home}", flush=True)
    from flows.cli.reading import read_feeds, reading_settings
    from tasks.ingest.check import check_feeds

    settings = reading_settings(changes)
    check_feeds(feeds, settings)
    return read_feeds(feeds, home, settings)


@app.command()
def backfill(feeds: Feeds, first: From, last: To, home: Home = HOME, changes: Set = NONE) -> int:
    """Read dated guides, each as what was known on that date. Their names hold the date."""
    print(f"GuideSpace: reading dated guides of {first:%F} to {last:%F} into {home}", flush=True)
    from flows.cli.reading import read_feeds, reading_settings
    from storage.home.zones import home_zone
    from tasks.ingest.sources.dates import dated_guides
    from tasks.pool import cores

    settings = reading_settings([f"ingest.workers={cores()}", *changes])
    span = first.date(), last.date(), home_zone(home)
    return read_feeds(dated_guides(feeds, *span, settings.private_addresses), home, settings)


@app.command()
def similar(
    title: str,
    home: Home = HOME,
    k: Number = 10,
    description: Description = "",
    channel: Channel = "",
    hour: Hour = None,
    search: Method = "auto",
    model: Model = None,
    as_json: AsJson = False,
) -> None:
    """Titles like this one under the model that serves. It may be one that no guide has."""
    from flows.cli.explain import corrections_of, neighbour_documents, neighbour_lines, open_champion
    from storage.home.corrections import read_corrections
    from storage.home.workspace import Workspace
    from tasks.search.query import Query

    opened, query = open_champion(home, search, model), Query(title, description, channel, hour)
    found = neighbour_documents(read_corrections(Workspace(home).home), opened.similar(query, k))
    for note in filter(None, (opened.recall_note(k, query), *corrections_of(home, title))):
        print(note, file=sys.stderr)
    show(found, as_json, neighbour_lines(found))


@app.command()
def explain(left: Left, right: Right = None, home: Home = HOME, as_json: AsJson = False) -> None:
    """Why two titles are near, or who decided what one is. Of two, also what changes without each word."""
    from flows.cli.explain import explain_titles

    document, lines = explain_titles(home, left, right)
    show(document, as_json, lines)


@app.command()
def duplicates(home: Home = HOME, minimum: Minimum = 0.95, as_json: AsJson = False) -> None:
    """Pairs of titles of the last run that are nearly the same. The nearest come first."""
    if not 0.8 <= minimum <= 1:  # below, the bands of SimHash would be too many
        raise BadParameter(f"--minimum {minimum} is not a number from 0.8 to 1.")
    from flows.cli.explain import duplicate_line, find_duplicates

    pairs = find_duplicates(home, minimum)
    show(pairs, as_json, map(duplicate_line, pairs))


@app.command()
def scores(home: Home = HOME, as_json: AsJson = False) -> None:
    """Scores of the last run, beside plain baselines."""
    from flows.cli.render import scores_lines
    from storage.home.latest import read_scores

    document = read_scores(home)
    show(document, as_json, scores_lines(document))


@app.command()
def categories(home: Home = HOME, as_json: AsJson = False) -> None:
    """Labels of the last run, and why categories were dropped."""
    from flows.cli.render import category_lines
    from storage.home.latest import read_categories

    document = read_categories(home)
    show(document, as_json, category_lines(document))


@app.command()
def status(home: Home = HOME, as_json: AsJson = False) -> None:
    """What the catalogue holds: feeds, rejects with reasons, counts."""
    from flows.cli.render import status_lines
    from storage.catalogue.feeds import read_status
    from storage.home.workspace import Workspace

    workspace = Workspace(home, create=False)
    size = {"home": str(workspace.home), "home_bytes": workspace.size()}
    document = {**read_status(workspace.home), **size}
    show(document, as_json, status_lines(document))


@app.command()
def sql(query: Query = None, values: Values = NONE, home: Home = HOME, as_json: AsJson = False) -> None:
    """Answer a query over the last run. Without one, print the views as SQL for a DuckDB of your own."""
    from flows.cli.render import table_lines
    from flows.cli.sql import answer, plain, run_folders
    from storage.catalogue.views import view_statements

    if query is None:
        print(view_statements(run_folders(home)))
    else:
        rows = answer(home, query, values)
        show(plain(rows) if as_json else None, as_json, table_lines(rows))


@app.command()
def export(out: Out, form: Format, buckets: Buckets = None, home: Home = HOME) -> None:
    """Write the corpus or the vectors for other programs."""
    from flows.export import export as write_export

    for line in write_export(home, form, out, buckets):
        print(line)


@app.command()
def ngrams(model: NgramModel, words: WordList, as_json: AsJson = False) -> None:
    """Character n-grams of words, from a fastText model. With their rows and vectors."""
    from flows.cli.words import ngram_lines

    show(None, False, ngram_lines(model, _read_words(words), as_json))


@app.command()
def vector(model: VectorModel, words: WordList, as_json: AsJson = False) -> None:
    """Vectors of words from a fastText model or a text form. The words may be unknown."""
    from flows.cli.words import vector_lines

    show(None, False, vector_lines(model, _read_words(words), as_json))


def _read_words(words: list[str]) -> list[str]:
    return [line.rstrip("\n") for line in sys.stdin] if words == ["-"] else words


@app.command()
def neighbours(model: VectorModel, word: str, k: Number = 10, as_json: AsJson = False) -> None:
    """Words nearest to a word in a fastText model or a text form."""
    from flows.cli.words import find_neighbours

    found = find_neighbours(model, word, k)
    show(found, as_json, (f"{near['cosine']:.3f}  {near['word']}" for near in found))


@app.command()
def settings(name: Below = "", as_json: AsJson = False, markdown: bool = False) -> None:
    """Every setting with type, default, bounds and description."""
    from flows.cli.settings import list_settings, markdown_lines, setting_lines

    rows = list_settings(name)
    show(rows, as_json, (markdown_lines if markdown else setting_lines)(rows))


@app.command()
def doctor(home: Home = HOME, as_json: AsJson = False) -> int:
    """Check versions, home, locks and devices."""
    from flows.cli.doctor import examine

    findings = []
    for finding in examine(home):
        findings.append(finding)
        if not as_json:
            print(f"{finding.state:>4}  {finding.about}: {finding.text}", flush=True)
    if as_json:
        print(json.dumps([asdict(finding) for finding in findings], indent=1))
    return any(finding.state == "bad" for finding in findings)
