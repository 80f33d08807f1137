"""What each subcommand does: takes the parsed arguments, prints, returns the exit code.

Imports stand inside the functions: nothing heavy is imported for a command that does not need it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

SAMPLE = Path(__file__).resolve().parent.parent / "sample" / "guide.xml.gz"


def nightly(given: argparse.Namespace) -> int:
    """Reads, learns, scores and publishes."""
    feeds = given.feed or []
    _announce(f"nightly run of {_feeds(feeds)} into {given.home}, preset {given.preset}")
    from flows.server import start_prefect
    from tasks.ingest.check import check_feeds
    from tasks.ingest.settings import IngestSettings

    if feeds or not given.as_of:
        check_feeds(feeds, IngestSettings())
    starting = None if given.assignments or given.as_of else start_prefect(given.home)  # what can be mistyped is read first
    from flows.assignments import override
    from flows.console import run_nightly
    from flows.presets import PRESETS
    from flows.reading import read_instant

    settings = override(PRESETS[given.preset], given.assignments)
    as_of = read_instant(given.as_of) if given.as_of else None
    settings = override(settings, _without_sample(feeds, settings.ingest.leave_out))
    return run_nightly(feeds, given.home, settings, as_of, starting or start_prefect(given.home))


def _announce(what: str) -> None:
    """The first line, before anything heavy is imported."""
    print(f"GuideSpace: {what}", flush=True)


def _feeds(feeds: Sequence[str]) -> str:
    """How many feeds were named."""
    return f"{len(feeds)} feed{'s' if len(feeds) != 1 else ''}"


def _without_sample(feeds: Sequence[str], left_out: Sequence[str]) -> list[str]:
    """What keeps the bundled sample out of a space of your own guides, as an assignment."""
    if not feeds or not SAMPLE.exists() or str(SAMPLE) in {str(Path(feed).resolve()) for feed in feeds}:
        return []
    return [f"ingest.leave_out={json.dumps([*left_out, str(SAMPLE)])}"]


def tune(given: argparse.Namespace) -> int:
    """Compares the rules."""
    _announce(f"comparison of rules on {_feeds(given.feed)}, in {given.home}, preset {given.preset}")
    from flows.assignments import SettingError, override
    from flows.console import run_tune
    from flows.presets import PRESETS
    from flows.server import start_prefect
    from tasks.contest.courses import entries
    from tasks.contest.settings import ContestSettings
    from tasks.ingest.check import check_feeds
    from tasks.ingest.settings import IngestSettings

    check_feeds(given.feed, IngestSettings())
    usual = ContestSettings()
    try:
        contest = ContestSettings(rules=tuple(given.rules), sizes=tuple(given.sizes or usual.sizes), rates=tuple(given.rates or usual.rates))
    except ValueError as error:
        raise SettingError(str(error)) from error
    settings = override(PRESETS[given.preset], given.assignments)
    settings = override(settings, _without_sample(given.feed, settings.ingest.leave_out))
    entries(settings.train, contest)  # refuses a name that is no rule's
    return run_tune(given.feed, given.home, settings, contest, start_prefect(given.home))


def ingest(given: argparse.Namespace) -> int:
    """Reads guides into the catalogue."""
    _announce(f"reading {_feeds(given.feed)} into {given.home}")
    from flows.assignments import override
    from flows.reading import ReadingSettings, run_ingest
    from tasks.ingest.check import check_feeds

    settings = override(ReadingSettings(), given.assignments).ingest
    check_feeds(given.feed, settings)
    return run_ingest(given.feed, given.home, settings)


def backfill(given: argparse.Namespace) -> int:
    """Reads dated guides as what was said then."""
    _announce(f"reading dated guides of {given.first} to {given.last} into {given.home}")
    from flows.assignments import override
    from flows.reading import ReadingSettings, cores, run_backfill

    settings = override(ReadingSettings(), [f"ingest.workers={cores()}", *given.assignments]).ingest
    return run_backfill(given.feed, given.first, given.last, given.home, settings)


def similar(given: argparse.Namespace) -> int:
    """Titles like one."""
    from dataclasses import asdict

    from storage.tracking import Registry
    from storage.workspace import HomeError, Workspace
    from tasks.neighbours.index import SearchSettings
    from tasks.neighbours.search import TitleSearch

    champion = Registry(Workspace(given.home, create=False).home).champion()
    if champion is None:
        raise HomeError(f"{given.home} has no champion model yet; run `guidespace nightly --feed …` first")
    search = TitleSearch.open(champion.folder, SearchSettings(method=given.search))
    neighbours = search.similar(given.title, given.k)
    if told := search.told_recall(given.k):
        print(told, file=sys.stderr)
    if given.json:
        print(json.dumps([asdict(neighbour) for neighbour in neighbours], ensure_ascii=False, indent=1))
        return 0
    width = max((len(neighbour.title) for neighbour in neighbours), default=0)
    for neighbour in neighbours:
        print(f"{neighbour.cosine:.3f}  {neighbour.title:<{min(width, 60)}}  {', '.join(neighbour.categories)}  [{', '.join(neighbour.channels[:3])}]")
    return 0


def explain(given: argparse.Namespace) -> int:
    """Why two titles are near."""
    from dataclasses import asdict

    from flows.explain import explain_titles, explanation_lines

    found = explain_titles(given.home, given.left, given.right)
    print(json.dumps(asdict(found), ensure_ascii=False, indent=1) if given.json else "\n".join(explanation_lines(found)))
    return 0


def duplicates(given: argparse.Namespace) -> int:
    """Titles that are nearly the same."""
    from flows.explain import duplicates as find_duplicates

    pairs = find_duplicates(given.home, given.minimum)
    if given.json:
        print(json.dumps(pairs, ensure_ascii=False, indent=1))
        return 0
    for pair in pairs:
        print(f"{pair['cosine']:.3f}  " + "  =  ".join(f"{title} [{', '.join(channels[:2])}]" for title, channels in zip(pair["titles"], pair["channels"], strict=True)))
    return 0


def scores(given: argparse.Namespace) -> int:
    """Scores of the last run."""
    from flows.latest import read_scores
    from flows.tables import scores_table

    document = read_scores(given.home)
    print(json.dumps(document, indent=1) if given.json else scores_table(document))
    return 0


def categories(given: argparse.Namespace) -> int:
    """Labels, and dropped categories."""
    from flows.categories import category_lines, describe_categories

    document = describe_categories(given.home)
    print(json.dumps(document, ensure_ascii=False, indent=1) if given.json else "\n".join(category_lines(document)))
    return 0


def status(given: argparse.Namespace) -> int:
    """What the catalogue holds."""
    from flows.tables import status_table
    from storage.catalogue.status import status
    from storage.workspace import Workspace

    workspace = Workspace(given.home, create=False)
    document = {**status(workspace.home), "home": str(workspace.home), "home_bytes": workspace.size()}
    print(json.dumps(document, ensure_ascii=False, indent=1) if given.json else status_table(document))
    return 0


def sql(given: argparse.Namespace) -> int:
    """Answers a query."""
    from flows.sql import answer, plain, statements
    from flows.tables import rows_table

    if given.query is None:
        print(statements(given.home))
        return 0
    rows = answer(given.home, given.query, given.values)
    print(json.dumps(plain(rows), ensure_ascii=False, indent=1) if given.json else rows_table(rows))
    return 0


def export(given: argparse.Namespace) -> int:
    """Writes vectors or the corpus."""
    from flows.export import export as write_export

    for line in write_export(given.home, given.format, given.out, given.buckets):
        print(line)
    return 0


def words(given: argparse.Namespace) -> int:
    """Questions about words to a fastText model: given.question."""
    from flows.words import print_neighbours, print_ngrams, print_vectors

    if given.question == "neighbours":
        lines = print_neighbours(given.model, given.word, given.k, given.json)
    else:
        words = [line.rstrip("\n") for line in sys.stdin] if given.words == ["-"] else given.words
        lines = (print_ngrams if given.question == "ngrams" else print_vectors)(given.model, words, given.json)
    for line in lines:
        print(line)
    return 0


def settings(given: argparse.Namespace) -> int:
    """Every setting."""
    from flows.listing import list_settings, setting_lines

    rows = list_settings(given.beginning)
    print(json.dumps(rows, ensure_ascii=False, indent=1) if given.json else "\n".join(setting_lines(rows)))
    return 0


def doctor(given: argparse.Namespace) -> int:
    """What is wrong here; 1 if anything is."""
    from flows.doctor import examine

    findings = []
    for finding in examine(given.home):
        findings.append(finding)
        if not given.json:
            print(f"{finding.state:>4}  {finding.about}: {finding.text}", flush=True)
    if given.json:
        print(json.dumps([finding.__dict__ for finding in findings], indent=1))
    return 1 if any(finding.state == "bad" for finding in findings) else 0
