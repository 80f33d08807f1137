"""What was filled, how sure it is, and examples, as text."""

from collections.abc import Iterator

from tasks.enrich.enrich import Report
from tasks.enrich.settings import EnrichOptions

LEVELS = ("", " at level 2", " at level 3")


def report_lines(report: Report, options: EnrichOptions, written: str) -> Iterator[str]:
    """The report; ``written`` says where the guide is, empty after a dry run."""
    yield f"{report.programmes:,} programmes, {report.missing:,} of them without a category"
    for by, count in report.filled.most_common():
        yield f"  {count:,} filled by {by}"
    if report.placeholders:
        yield f"  {report.placeholders:,} left: their title names no programme"
    left = report.missing - sum(report.filled.values()) - report.placeholders
    if left:
        yield f"  {left:,} left: not sure enough"
    if report.beside:
        yield f"{report.beside:,} programmes with categories got names beside them"
    if options.episodes:
        lack = f"{report.without_number:,} programmes with a sub-title lack an episode number"
        yield f"{lack}: {report.numbered:,} got that of the same episode's other airings"
    if report.unreadable:
        yield f"{report.unreadable:,} programmes cannot be read and stay as they are"
    for level, voted in enumerate(report.levels):
        asked, at = options.minimum_precision, LEVELS[min(level, 2)]
        if "reason" in voted.held_out:
            yield f"no vote{at}: {voted.held_out['reason']}"
            continue
        count = int(voted.chosen.sum())
        expected = f", expected precision {voted.confidence[voted.chosen].mean():.3f}" if count else ""
        yield f"the vote{at}: {count:,} of {report.titles_asked:,} titles{expected} (asked for: {asked:g})"
        figures = voted.held_out[f"asked_{asked:g}"]
        assert isinstance(figures, dict)
        reached = "–" if figures["precision"] is None else f"{figures['precision']:.3f}"
        n = voted.held_out["n"]
        yield f"  on {n:,} held-out titles: precision {reached}, coverage {figures['coverage']:.3f}"
    if report.damage:
        yield f"the guide is damaged ({report.damage}): it is written as far as it can be read"
    if written:
        yield f"The guide: {written}"
    elif report.examples:
        yield "Examples of the vote:"
        for example in report.examples:
            yield f"  {example.answer.confidence:.2f}  {example.title}: {', '.join(example.answer.names)}"
