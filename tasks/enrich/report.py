"""Formats the report of an enrichment as text."""

from collections.abc import Iterator, Mapping

from tasks.enrich.enrich import Report
from tasks.enrich.output import genres_file
from tasks.enrich.players.base import GENRES
from tasks.enrich.settings import EnrichOptions

LEVELS = ("", " at level 2", " at level 3")


def report_lines(report: Report, options: EnrichOptions, written: str) -> Iterator[str]:
    """Yields the lines of the report. ``written`` is the output path, or "" if nothing was written."""
    yield f"{report.programmes:,} programmes, {report.missing:,} of them without a category"
    for source, count in report.filled.most_common():
        yield f"  {count:,} filled by {source}"
    if report.placeholders:
        yield f"  {report.placeholders:,} skipped: placeholder titles"
    uncertain_count = report.missing - sum(report.filled.values()) - report.placeholders
    if uncertain_count:
        yield f"  {uncertain_count:,} skipped: confidence too low"
    if report.extended:
        yield f"{report.extended:,} programmes with categories got additional names"
    if options.adds_numbers:
        yield (
            f"{report.without_number:,} programmes with a sub-title lack an episode number: "
            f"{report.numbered:,} filled from other airings of the episode"
        )
    for player in options.players:
        counts = ", ".join(f"{name} {count:,}" for name, count in report.written[player.name].most_common())
        yield f"for {player.name}: {counts or 'nothing to add'}"
    if report.unreadable:
        yield f"{report.unreadable:,} programmes cannot be read and are copied unchanged"
    for level, result in enumerate(report.levels):
        min_precision, level_text = options.minimum_precision, LEVELS[min(level, 2)]
        if "reason" in result.held_out:
            yield f"no predictions{level_text}: {result.held_out['reason']}"
            continue
        count = int(result.chosen.sum())
        expectation = f", expected precision {result.confidence[result.chosen].mean():.3f}" if count else ""
        yield (
            f"predictions{level_text}: {count:,} of {report.titles_voted_on:,} titles{expectation} "
            f"(minimum precision: {min_precision:g})"
        )
        yield f"  on held-out shows: {_format_held_out(result.held_out, min_precision)}"
        if isinstance(channels := result.held_out.get("channels"), dict):
            yield f"  on held-out channels: {_format_held_out(channels, min_precision)}"
    if report.damage:
        yield f"the guide is damaged ({report.damage}): the output ends at the damage"
    if written:
        yield f"The guide: {written}"
        if options.needs(GENRES):
            yield f"The table of genres for Kodi: {genres_file(written)}"
    elif report.examples:
        yield "Examples of predictions:"
        for example in report.examples:
            yield f"  {example.answer.confidence:.2f}  {example.title}: {', '.join(example.answer.names)}"


def _format_held_out(held_out: Mapping[str, object], min_precision: float) -> str:
    """Formats the number of held-out titles, and the precision and coverage on them."""
    figures = held_out[f"asked_{min_precision:g}"]
    assert isinstance(figures, dict)
    precision = "–" if figures["precision"] is None else f"{figures['precision']:.3f}"
    return f"precision {precision}, coverage {figures['coverage']:.3f} of {held_out['n']:,} titles"
