"""Defines the commands that print results of the last run: ``similar``, ``explain``, ``sql`` and others."""

import sys
from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, BadParameter, Option

from flows.cli.options import NO_VALUES, AsJson, Home, Model, ResultCount
from flows.cli.render import show
from flows.defaults import DEFAULT_HOME

SEARCH_HELP = (
    "exact: all titles; approximate: titles of the nearest index cells; auto: exact below a million titles"
)
QUERY_HELP = "SQL over programmes, titles, clusters, neighbours and other views (docs/sql.md)"
VALUE_HELP = "value of $NAME in the query; may be repeated"
FORMS_HELP = (
    "titles: labels, word2vec or parquet; words: fasttext (with n-grams), vec, glove or word2vec-binary; "
    "model: the champion in one file, for --model"
)
BUCKETS_HELP = "fasttext: number of hash buckets of n-grams; fewer make a smaller file [default: the model's]"

Method = Annotated[Literal["auto", "exact", "approximate"], Option(help=SEARCH_HELP)]
Description = Annotated[str, Option(help="description of the programme, for a title that the guide lacks")]
Channel = Annotated[str, Option(metavar="NAME", help="channel of the programme: name or XMLTV id")]
Hour = Annotated[int | None, Option(metavar="H", help="local hour at which the programme airs, 0 to 23")]
LeftTitle = Annotated[
    str, Argument(metavar="A", help="a title that is compared with B, also with one of its words removed")
]
RightTitle = Annotated[
    str | None, Argument(metavar="B", help="another title; without it, the categories of A are explained")
]
MinimumCosine = Annotated[float, Option(metavar="COSINE", help="lowest cosine of a pair, 0.8 to 1")]
SqlQuery = Annotated[str | None, Argument(help=QUERY_HELP)]
QueryValues = Annotated[list[str], Option("--with", metavar="NAME=VALUE", help=VALUE_HELP)]
Out = Annotated[Path, Argument(help="file to write; a folder for labels")]
ExportForm = Literal["labels", "word2vec", "parquet", "fasttext", "vec", "glove", "word2vec-binary", "model"]
ExportFormat = Annotated[ExportForm, Option("--format", help=FORMS_HELP)]
Buckets = Annotated[int | None, Option(help=BUCKETS_HELP)]


def similar(
    title: str,
    home: Home = DEFAULT_HOME,
    k: ResultCount = 10,
    description: Description = "",
    channel: Channel = "",
    hour: Hour = None,
    search: Method = "auto",
    model: Model = None,
    as_json: AsJson = False,
) -> None:
    """Print the titles nearest to a title. The title need not be in the guide."""
    from flows.cli.explain import find_corrections, neighbour_lines, open_champion
    from flows.serving.neighbours import neighbour_documents
    from storage.home.corrections import read_corrections
    from storage.home.workspace import Workspace
    from tasks.search.query import Query

    titles, query = open_champion(home, search, model), Query(title, description, channel, hour)
    neighbours = neighbour_documents(read_corrections(Workspace(home).home), titles.similar(query, k))
    for note in filter(None, (titles.recall_note(k, query), *find_corrections(home, title))):
        print(note, file=sys.stderr)
    show(neighbours, as_json, neighbour_lines(neighbours))


def explain(
    left: LeftTitle,
    right: RightTitle = None,
    home: Home = DEFAULT_HOME,
    model: Model = None,
    as_json: AsJson = False,
) -> None:
    """Explain why two titles are near, or the categories of one."""
    from flows.cli.explain import explain_titles

    document, lines = explain_titles(home, left, right, model)
    show(document, as_json, lines)


def duplicates(home: Home = DEFAULT_HOME, minimum: MinimumCosine = 0.95, as_json: AsJson = False) -> None:
    """List nearly equal titles of the last run, nearest pairs first."""
    if not 0.8 <= minimum <= 1:  # a lower minimum would need too many bands of SimHash
        raise BadParameter(f"--minimum must be from 0.8 to 1, got {minimum}.")
    from flows.cli.explain import duplicate_line, find_duplicates

    pairs = find_duplicates(home, minimum)
    show(pairs, as_json, map(duplicate_line, pairs))


def scores(home: Home = DEFAULT_HOME, as_json: AsJson = False) -> None:
    """Print the scores of the last run and of its baselines."""
    from flows.cli.render import scores_lines
    from storage.home.latest import read_scores

    document = read_scores(home)
    show(document, as_json, scores_lines(document))


def categories(home: Home = DEFAULT_HOME, as_json: AsJson = False) -> None:
    """List labels, and dropped categories with the reason."""
    from flows.cli.render import category_lines
    from storage.home.latest import read_category_report

    document = read_category_report(home)
    show(document, as_json, category_lines(document))


def status(home: Home = DEFAULT_HOME, as_json: AsJson = False) -> None:
    """Print feeds, rejects by reason, failures and counts."""
    from flows.cli.render import status_lines
    from storage.catalogue.feeds import read_status
    from storage.home.readings import read_readings
    from storage.home.workspace import Workspace

    workspace = Workspace(home, create=False)
    readings = read_readings(workspace.home)
    failures = [{"source": feed.source, "reason": feed.failed} for feed in readings if feed.failed]
    size = {"home": str(workspace.home), "home_bytes": workspace.size()}
    document = {**read_status(workspace.home), "failures": failures, **size}
    show(document, as_json, status_lines(document))


def sql(
    query: SqlQuery = None,
    values: QueryValues = NO_VALUES,
    home: Home = DEFAULT_HOME,
    as_json: AsJson = False,
) -> None:
    """Query the last run by SQL. Without a query, print the views as SQL for another DuckDB."""
    from flows.cli.render import table_lines
    from flows.cli.sql import query_rows, run_folders, to_json_values
    from storage.catalogue.views import view_statements

    if query is None:
        print(view_statements(run_folders(home)))
    else:
        rows = query_rows(home, query, values)
        show(to_json_values(rows) if as_json else None, as_json, table_lines(rows))


def export(out: Out, form: ExportFormat, buckets: Buckets = None, home: Home = DEFAULT_HOME) -> None:
    """Write vectors, the corpus or the model to files. For other programs and other machines."""
    from flows.champion import export_model
    from tasks.export.export import export as write_export

    for line in export_model(home, out) if form == "model" else write_export(home, form, out, buckets):
        print(line)
