"""The arguments of ``guidespace``: every subcommand and its options, with what --help says of them."""

from __future__ import annotations

import argparse
import importlib.metadata
import math
import os
from pathlib import Path

from flows import commands

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
  guidespace categories                      the labels, and which categories were dropped and why
  guidespace sql "SELECT …"                  questions over programmes, clusters, neighbours and vectors
  guidespace export --format word2vec FILE   vectors or corpus for other programs
  guidespace vector MODEL WORD …             vectors of words from a fastText model (also: ngrams, neighbours)
  guidespace tune --feed guide.xml.gz        every optimizer side by side on that guide
  guidespace settings                        every setting, with type, default, bounds and description
  guidespace doctor                          what is wrong with this installation, if anything
"""
SETTINGS = """Every setting with type, default, bounds and description. `train.rule (adam).beta1` is set by
--set train.rule=adam train.rule.beta1=0.8"""
HOME_HELP = "folder that holds everything a run writes (default: $GUIDESPACE_HOME, else ./guidespace-home)"


def make_parser() -> argparse.ArgumentParser:
    """The parser of ``guidespace``; ``command`` of what it parses is the function to call."""
    parser = argparse.ArgumentParser(prog="guidespace", description=USAGE, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", action="version", version=f"%(prog)s {version()}")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True, dest="subcommand")

    def command(name: str, function: object, text: str, *, as_json: bool = True, home: bool = True) -> argparse.ArgumentParser:
        made = subparsers.add_parser(name, help=text, description=text)
        if home:
            made.add_argument("--home", default=os.environ.get("GUIDESPACE_HOME", "guidespace-home"), help=HOME_HELP)
        if as_json:
            made.add_argument("--json", action="store_true", help="print JSON, for other programs")
        made.set_defaults(command=function)
        return made

    nightly = command("nightly", commands.nightly, "Read a guide, learn its space, score it and publish it.", as_json=False)
    nightly.add_argument("--preset", choices=("smoke", "laptop", "gpu"), default="laptop", help="settings to start from (default: laptop)")
    nightly.add_argument("--as-of", metavar="DATE", help="run on what was known at the end of that day (YYYY-MM-DD, UTC) or at an ISO instant; --feed may be left out")
    ingest = command("ingest", commands.ingest, "Read guides into the catalogue and publish the snapshot; learn nothing.", as_json=False)
    backfill = command("backfill", commands.backfill, "Read guides with a date in their name, each as what was said on that date.", as_json=False)
    for end, text in (("from", "first"), ("to", "last")):
        backfill.add_argument(f"--{end}", required=True, dest=text, metavar="DATE", help=f"{text} date, YYYY-MM-DD")
    tune = command("tune", commands.tune, "Compare the rules that move the rows: same batches, several sizes, a few learning rates each.", as_json=False)
    tune.add_argument("--preset", choices=("smoke", "laptop", "gpu"), default="laptop", help="settings to start from (default: laptop)")
    tune.add_argument("--rules", nargs="+", default=[], metavar="RULE", help="names of rules, and yellowfin (default: all)")
    tune.add_argument("--sizes", nargs="+", type=int, default=None, metavar="N", help="dimensions (default: 32 128 256)")
    tune.add_argument("--rates", nargs="+", type=float, default=None, metavar="FACTOR", help="factors on each rule's own learning rate (default: 0.3 1 3)")
    for reading in (nightly, tune, ingest, backfill):
        reading.add_argument(
            "--feed", action="extend", nargs="+", required=reading is not nightly, default=None, metavar="FEED",
            help="XMLTV file, glob, folder, URL (http, s3 …), or env:NAME for one in a variable; plain or compressed; "
            "may be given more than once",
        )  # fmt: skip
        reading.add_argument(
            "--set", action="extend", nargs="+", default=[], dest="assignments", metavar="NAME=VALUE",
            help=f"change one setting, such as {'ingest.workers=4' if reading in (ingest, backfill) else 'train.epochs=5 or train.rule=adam'}",
        )  # fmt: skip

    similar = command("similar", commands.similar, "Titles like this one under the model that serves, also for a title no guide ever had.")
    similar.add_argument("title", metavar="TITLE")
    similar.add_argument("-k", type=int, default=10, help="how many (default: 10)")
    similar.add_argument(
        "--search", choices=("auto", "exact", "approximate"), default="auto",
        help="compare with all titles, or with those of the nearest cells, and say the recall (default: by their number)",
    )  # fmt: skip

    explain = command("explain", commands.explain, "Which words bring two titles together, which keep them apart, and what changes without each word.")
    explain.add_argument("left", metavar="A", help="a title; its words are taken away in turn")
    explain.add_argument("right", metavar="B", help="the other title")
    duplicates = command("duplicates", commands.duplicates, "Pairs of titles of the last run that are nearly the same, nearest first.")
    duplicates.add_argument("--minimum", type=_cosine, default=0.95, metavar="COSINE", help="least cosine of a pair, 0.8 to 1 (default: 0.95)")

    command("scores", commands.scores, "Scores of the last run, beside plain baselines.")
    command("categories", commands.categories, "Labels of the last run, and which categories were dropped and why.")
    command("status", commands.status, "What the catalogue holds: feeds, rejects with reasons, counts.")
    sql = command("sql", commands.sql, "Answer a query over the tables of the last run; without one, print the views as SQL for a DuckDB of your own.")
    sql.add_argument("query", metavar="QUERY", nargs="?", help="SQL over programmes, channels, airings, titles, clusters, neighbours, vectors, words and others (docs/sql.md)")
    sql.add_argument("--with", action="append", default=[], dest="values", metavar="NAME=VALUE", help="what $NAME in the query stands for; may be given more than once")
    export = command("export", commands.export, "Write the corpus or the vectors for other programs.", as_json=False)
    export.add_argument(
        "--format", choices=("labels", "word2vec", "parquet", "fasttext", "vec", "glove", "word2vec-binary"), required=True,
        help="of titles: labels (__label__ lines, train and test files in a folder), word2vec (text), parquet; "
        "of words: fasttext (.bin with n-grams), vec, glove, word2vec-binary",
    )  # fmt: skip
    export.add_argument("--buckets", type=int, metavar="N", help="fasttext: hash buckets to distil into, for a smaller file (default: the model's own 2,000,000)")
    export.add_argument("out", metavar="OUT", type=Path, help="file to write; a folder for labels")
    for name, function, text in (
        ("ngrams", commands.words, "Character n-grams of words with their rows and vectors, from a fastText model."),
        ("vector", commands.words, "Vectors of words, known or not, from a fastText model or a text form."),
        ("neighbours", commands.words, "Words nearest to a word in a fastText model or a text form."),
    ):
        words = subparsers.add_parser(name, help=text, description=text)
        kinds = "fastText .bin or .ftz" if name == "ngrams" else "fastText .bin or .ftz, compact store, .vec, word2vec or GloVe file"
        words.add_argument("model", metavar="MODEL", type=Path, help=kinds)
        if name == "neighbours":
            words.add_argument("word", metavar="WORD", help="a word")
            words.add_argument("-k", type=int, default=10, help="how many (default: 10)")
        else:
            words.add_argument("words", metavar="WORD", nargs="+", help="a word; - reads them from standard input, one a line")
        words.add_argument("--json", action="store_true", help="print JSON, for other programs")
        words.set_defaults(command=function, question=name)
    settings = command("settings", commands.settings, SETTINGS, home=False)
    settings.add_argument("beginning", metavar="NAME", nargs="?", default="", help="only this one and those below it, such as train or train.rule")
    command("doctor", commands.doctor, "Check versions, home, locks and devices.")
    return parser


def version() -> str:
    """Of the installed package."""
    try:
        return importlib.metadata.version("guidespace")
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _cosine(text: str) -> float:
    """A number from 0.8 to 1: below, the bands that find near duplicates would be too many."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.8 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is no number from 0.8 to 1")
    return value
