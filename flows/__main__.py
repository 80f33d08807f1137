"""The command ``guidespace`` (also ``python -m flows``).

Nothing heavy is imported before it is known what is asked: ``--help`` answers at once.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

SAMPLE = Path(__file__).resolve().parent.parent / "sample" / "guide.xml.gz"
USAGE = """\
GuideSpace turns a TV guide (XMLTV) into a space: a vector for every programme title, groups of titles,
scores against held-out categories, and a map you can open in a browser.

  guidespace nightly --feed guide.xml.gz     read, learn, score, publish
  guidespace ingest --feed guide.xml.gz      only read; backfill reads a folder of dated guides
  guidespace similar "Murder, She Wrote"     titles like this one, known to the guide or not
  guidespace explain "A" "B"                 which words bring two titles together, and which keep them apart
  guidespace duplicates                      titles that are nearly the same, on whatever channel
  guidespace scores                          how good the space is, beside plain baselines
  guidespace status                          what the catalogue holds, and what was rejected
  guidespace export --format word2vec FILE   vectors or corpus for other programs
  guidespace vector MODEL WORD …             vectors of words from a fastText model (also: ngrams, neighbours)
  guidespace doctor                          what is wrong with this installation, if anything
"""
HOME_HELP = "folder that holds everything a run writes (default: $GUIDESPACE_HOME, else ./guidespace-home)"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit code: 0 done, 1 failed, 2 asked for something that cannot be, 130 interrupted."""
    given = _parser().parse_args(arguments)
    os.environ.setdefault("DO_NOT_TRACK", "1")  # Prefect, MLflow: no telemetry unless somebody asks for it
    os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
    try:
        return given.command(given)
    except KeyboardInterrupt:
        print("interrupted; what was finished is kept, the same command goes on from there", file=sys.stderr)
        return 130
    except BrokenPipeError:  # `guidespace scores | head`: whoever read has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        from flows.console import explain

        return explain(error)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="guidespace", description=USAGE, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def command(name: str, function: object, text: str, *, as_json: bool = True) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=text, description=text)
        made.add_argument("--home", default=os.environ.get("GUIDESPACE_HOME", "guidespace-home"), help=HOME_HELP)
        if as_json:
            made.add_argument("--json", action="store_true", help="print JSON, for other programs")
        made.set_defaults(command=function)
        return made

    nightly = command("nightly", _nightly, "Read a guide, learn its space, score it and publish it.", as_json=False)
    nightly.add_argument("--preset", choices=("smoke", "laptop", "gpu"), default="laptop", help="settings to start from (default: laptop)")
    nightly.add_argument("--as-of", metavar="DATE", help="run on what was known at the end of that day (YYYY-MM-DD, UTC) or at an ISO instant; --feed may be left out")
    ingest = command("ingest", _ingest, "Read guides into the catalogue and publish the snapshot; learn nothing.", as_json=False)
    backfill = command("backfill", _backfill, "Read guides with a date in their name, each as what was said on that date.", as_json=False)
    for end, text in (("from", "first"), ("to", "last")):
        backfill.add_argument(f"--{end}", required=True, dest=text, metavar="DATE", help=f"{text} date, YYYY-MM-DD")
    for reading in (nightly, ingest, backfill):
        reading.add_argument(
            "--feed", action="extend", nargs="+", required=reading is not nightly, default=None, metavar="FEED",
            help="XMLTV file, glob, folder or URL (http, s3 …); plain or compressed; may be given more than once",
        )  # fmt: skip
        reading.add_argument(
            "--set", action="extend", nargs="+", default=[], dest="assignments", metavar="NAME=VALUE",
            help="change one setting, such as train.epochs=5, train.rule=adam or ingest.workers=4",
        )  # fmt: skip

    similar = command("similar", _similar, "Titles like this one under the model that serves, also for a title no guide ever had.")
    similar.add_argument("title", metavar="TITLE")
    similar.add_argument("-k", type=int, default=10, help="how many (default: 10)")

    explain = command("explain", _explain, "Which words bring two titles together, which keep them apart, and what changes without each word.")
    explain.add_argument("left", metavar="A", help="a title; its words are taken away in turn")
    explain.add_argument("right", metavar="B", help="the other title")
    duplicates = command("duplicates", _duplicates, "Pairs of titles of the last run that are nearly the same, nearest first.")
    duplicates.add_argument("--minimum", type=_cosine, default=0.95, metavar="COSINE", help="least cosine of a pair, 0.8 to 1 (default: 0.95)")

    command("scores", _scores, "Scores of the last run, beside plain baselines.")
    command("status", _status, "What the catalogue holds: feeds, rejects with reasons, counts.")
    export = command("export", _export, "Write the corpus or the vectors for other programs.", as_json=False)
    export.add_argument(
        "--format", choices=("labels", "word2vec", "parquet", "fasttext", "vec", "glove", "word2vec-binary"), required=True,
        help="of titles: labels (__label__ lines, train and test files in a folder), word2vec (text), parquet; "
        "of words: fasttext (.bin with n-grams), vec, glove, word2vec-binary",
    )  # fmt: skip
    export.add_argument("--buckets", type=int, metavar="N", help="fasttext: hash buckets to distil into, for a smaller file (default: the model's own 2,000,000)")
    export.add_argument("out", metavar="OUT", type=Path, help="file to write; a folder for labels")
    for name, function, text in (
        ("ngrams", _words, "Character n-grams of words with their rows and vectors, from a fastText model."),
        ("vector", _words, "Vectors of words, known or not, from a fastText model or a text form."),
        ("neighbours", _words, "Words nearest to a word in a fastText model or a text form."),
    ):
        words = commands.add_parser(name, help=text, description=text)
        words.add_argument("model", metavar="MODEL", type=Path, help="fastText .bin or .ftz, compact store, .vec, word2vec or GloVe file")
        words.add_argument("words", metavar="WORD", nargs=1 if name == "neighbours" else "+", help="a word; - reads them from standard input, one a line")
        words.add_argument("-k", type=int, default=10, help="how many (default: 10)" if name == "neighbours" else argparse.SUPPRESS)
        words.add_argument("--json", action="store_true", help="print JSON, for other programs")
        words.set_defaults(command=function, question=name)
    command("doctor", _doctor, "Check versions, home, locks and devices.")
    return parser


def _nightly(given: argparse.Namespace) -> int:
    from flows.server import start_prefect
    from tasks.ingest.check import check_feeds
    from tasks.ingest.settings import IngestSettings

    feeds = given.feed or []
    if feeds or not given.as_of:
        check_feeds(feeds, IngestSettings())
    starting = None if given.assignments or given.as_of else start_prefect(given.home)  # what can be mistyped is read first
    from flows.console import run_nightly
    from flows.presets import PRESETS
    from flows.reading import read_instant
    from flows.settings import override

    settings = override(PRESETS[given.preset], given.assignments)
    as_of = read_instant(given.as_of) if given.as_of else None
    if feeds and SAMPLE.exists() and str(SAMPLE) not in {str(Path(feed).resolve()) for feed in feeds}:
        settings = override(settings, [f"ingest.leave_out={json.dumps([*settings.ingest.leave_out, str(SAMPLE)])}"])  # your guide, without the bundled sample
    return run_nightly(feeds, given.home, settings, as_of, starting or start_prefect(given.home))


def _ingest(given: argparse.Namespace) -> int:
    from flows.reading import run_ingest
    from flows.settings import Settings, override
    from tasks.ingest.check import check_feeds

    settings = override(Settings(), given.assignments).ingest
    check_feeds(given.feed, settings)
    return run_ingest(given.feed, given.home, settings)


def _backfill(given: argparse.Namespace) -> int:
    from flows.reading import cores, run_backfill
    from flows.settings import Settings, override

    settings = override(Settings(), [f"ingest.workers={cores()}", *given.assignments]).ingest
    return run_backfill(given.feed, given.first, given.last, given.home, settings)


def _similar(given: argparse.Namespace) -> int:
    from dataclasses import asdict

    from storage.tracking import Registry
    from storage.workspace import HomeError, Workspace
    from tasks.neighbours.search import TitleSearch

    champion = Registry(Workspace(given.home, create=False).home).champion()
    if champion is None:
        raise HomeError(f"{given.home} has no champion model yet; run `guidespace nightly --feed …` first")
    neighbours = TitleSearch.open(champion.folder).similar(given.title, given.k)
    if given.json:
        print(json.dumps([asdict(neighbour) for neighbour in neighbours], ensure_ascii=False, indent=1))
        return 0
    width = max((len(neighbour.title) for neighbour in neighbours), default=0)
    for neighbour in neighbours:
        print(f"{neighbour.cosine:.3f}  {neighbour.title:<{min(width, 60)}}  {', '.join(neighbour.categories)}  [{', '.join(neighbour.channels[:3])}]")
    return 0


def _explain(given: argparse.Namespace) -> int:
    from dataclasses import asdict

    from flows.explain import explain_titles, explanation_lines

    found = explain_titles(given.home, given.left, given.right)
    print(json.dumps(asdict(found), ensure_ascii=False, indent=1) if given.json else "\n".join(explanation_lines(found)))
    return 0


def _cosine(text: str) -> float:
    """A number from 0.8 to 1: below, the bands that find near duplicates would be too many."""
    value = float(text)
    if not 0.8 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not between 0.8 and 1")
    return value


def _duplicates(given: argparse.Namespace) -> int:
    from flows.explain import duplicates

    pairs = duplicates(given.home, given.minimum)
    if given.json:
        print(json.dumps(pairs, ensure_ascii=False, indent=1))
        return 0
    for pair in pairs:
        print(f"{pair['cosine']:.3f}  " + "  =  ".join(f"{title} [{', '.join(channels[:2])}]" for title, channels in zip(pair["titles"], pair["channels"], strict=True)))
    return 0


def _scores(given: argparse.Namespace) -> int:
    from flows.latest import read_scores
    from flows.tables import scores_table

    document = read_scores(given.home)
    print(json.dumps(document, indent=1) if given.json else scores_table(document))
    return 0


def _status(given: argparse.Namespace) -> int:
    from flows.tables import status_table
    from storage.catalogue.status import status
    from storage.workspace import Workspace

    document = status(Workspace(given.home, create=False).home)
    print(json.dumps(document, ensure_ascii=False, indent=1) if given.json else status_table(document))
    return 0


def _export(given: argparse.Namespace) -> int:
    from flows.export import export

    for line in export(given.home, given.format, given.out, given.buckets):
        print(line)
    return 0


def _words(given: argparse.Namespace) -> int:
    from flows.words import print_neighbours, print_ngrams, print_vectors

    words = [line.rstrip("\n") for line in sys.stdin] if given.words == ["-"] else given.words
    if given.question == "neighbours":
        lines = print_neighbours(given.model, words[0], given.k, given.json)
    else:
        lines = (print_ngrams if given.question == "ngrams" else print_vectors)(given.model, words, given.json)
    for line in lines:
        print(line)
    return 0


def _doctor(given: argparse.Namespace) -> int:
    from flows.doctor import examine

    findings = list(examine(given.home))
    if given.json:
        print(json.dumps([finding.__dict__ for finding in findings], indent=1))
    else:
        for finding in findings:
            print(f"{finding.state:>4}  {finding.about}: {finding.text}")
    return 1 if any(finding.state == "bad" for finding in findings) else 0


def entry() -> None:
    """The console command: runs it and leaves without the interpreter's teardown."""
    from flows.server import leave

    leave(main())


if __name__ == "__main__":
    entry()
