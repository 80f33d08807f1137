"""The command ``guidespace enrich``: its arguments, and the guide that it writes."""

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from flows.cli.commands import HOME, NONE, Home, Set, app
from flows.cli.exits import DONE, INCOMPLETE

if TYPE_CHECKING:
    from tasks.enrich.enrich import Report
    from tasks.enrich.settings import EnrichOptions
    from tasks.ingest.settings import IngestSettings

GUIDE = "XMLTV file, URL, env:NAME, or - for standard input; plain or compressed"
OUT = "file to write, compressed where it ends in .gz, .bz2 or .xz; - for standard output"
VOCABULARY = "names: the guide's own, those of ETSI EN 300 468, or a CSV file (raw and a column a level)"
PRECISION = (
    "share of the predicted categories that shall be right; fewer programmes are filled for a higher one"
)
EVERY = "also names beside existing categories, so that players know them"
MARK = "put a comment behind each element that was added"
EPISODES = "also episode numbers, where other airings of the same episode have one"
DRY = "write nothing; print counts and twenty examples"

In = Annotated[str, Argument(metavar="IN", help=GUIDE)]
Out = Annotated[str, Argument(metavar="OUT", help=OUT)]
Names = Annotated[str, Option("--vocabulary", metavar="own|etsi|FILE", help=VOCABULARY)]
Precision = Annotated[float, Option("--min-precision", metavar="P", help=PRECISION)]
Every = Annotated[bool, Option("--all", help=EVERY)]
Mark = Annotated[bool, Option("--mark", help=MARK)]
Episodes = Annotated[bool, Option("--episodes", help=EPISODES)]
Dry = Annotated[bool, Option("--dry-run", help=DRY)]


@app.command()
def enrich(
    guide: In,
    out: Out = "",
    home: Home = HOME,
    vocabulary: Names = "own",
    precision: Precision = 0.9,
    every: Every = False,
    mark: Mark = False,
    episodes: Episodes = False,
    dry_run: Dry = False,
    changes: Set = NONE,
) -> int:
    """Fill a guide: categories where it has none. All else stays byte for byte."""
    from flows.cli.reading import reading_settings
    from tasks.enrich.errors import EnrichError
    from tasks.enrich.report import report_lines
    from tasks.enrich.settings import EnrichOptions

    options = EnrichOptions(
        vocabulary=vocabulary, every=every, minimum_precision=precision, mark=mark, episodes=episodes
    )
    if not out and not dry_run:
        raise EnrichError("OUT is missing: name a file to write, or - for standard output; or use --dry-run")
    written = "" if dry_run else out
    reading = reading_settings(["ingest.private_addresses=true", *changes])
    report = enrich_guide(guide, written, home, options, reading)
    to = sys.stderr if written == "-" else sys.stdout
    shown = "standard output" if written == "-" else written
    for line in report_lines(report, options, shown):
        print(line, file=to)
    return INCOMPLETE if report.damage else DONE


def enrich_guide(
    guide: str, out: str, home: str, options: "EnrichOptions", reading: "IngestSettings"
) -> "Report":
    """Fills a guide's gaps by the model that serves and writes it; an empty ``out`` writes nothing."""
    from flows.champion import champion_folder
    from storage.home.corrections import read_corrections
    from storage.home.guides import current_guide
    from storage.home.workspace import Workspace
    from storage.home.zones import home_zone
    from tasks.enrich.enrich import plan, read_guide
    from tasks.enrich.model import CategoryModel
    from tasks.enrich.output import check_output, write_output
    from tasks.enrich.source import open_source
    from tasks.enrich.vocabulary import read_vocabulary

    check_output(out or "-")
    read_vocabulary(options.vocabulary, {})  # an error in it is known before the guide is read
    folder, workspace = champion_folder(home), Workspace(home, create=False)
    newest = current_guide(workspace) if options.episodes else None
    known = newest and workspace.folder(newest)
    with tempfile.TemporaryDirectory(prefix="guidespace-enrich-") as name:
        work = Path(name)
        with open_source(guide, work, reading, home_zone(home).key) as source:
            read = read_guide(source, work, options)
            model = CategoryModel(folder, read_corrections(workspace.home))
            enrichment = plan(source, *read, model, options, known)
            if out:
                write_output(out, enrichment.pieces())
            else:
                for _ in enrichment.additions():  # counts
                    pass
            enrichment.report.damage = source.damage
            return enrichment.report
