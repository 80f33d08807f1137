"""Formats the report of an enrichment as text."""

from collections.abc import Iterator, Mapping

from tasks.enrich.enrich import Report
from tasks.enrich.output import genres_file
from tasks.enrich.players.base import GENRES
from tasks.enrich.settings import EnrichOptions


def report_lines(report: Report, options: EnrichOptions, written: str) -> Iterator[str]:
    """Yields the lines of the report. ``written`` is the path of the output, or "" if nothing was written."""
    yield f"{report.programmes:,} programmes, {report.missing:,} of them without a category"
    for source, count in report.filled_by_source.most_common():
        yield f"  {count:,} filled {source}"
    if report.placeholders:
        yield f"  {report.placeholders:,} not filled: their titles are placeholders"
    uncertain_count = report.missing - sum(report.filled_by_source.values()) - report.placeholders
    if uncertain_count:
        yield f"  {uncertain_count:,} not filled: the confidence of the prediction is too low"
    if report.extended:
        yield f"{report.extended:,} programmes with categories got additional names"
    if options.adds_numbers:
        yield (
            f"{report.without_number:,} programmes with a sub-title lack an episode number; "
            f"{report.numbers_added:,} of them got the number of another airing of the episode"
        )
    for player in options.players:
        counts = report.written[player.name].most_common()
        additions = ", ".join(f"{name} to {count:,} programmes" for name, count in counts)
        yield f"added for {player.name}: {additions or 'nothing'}"
    if report.unreadable:
        yield f"{report.unreadable:,} programmes cannot be read and are copied unchanged"
    for level, predictions in enumerate(report.predictions_by_level):
        min_precision, level_text = options.minimum_precision, f" at level {level + 1}" if level else ""
        if "reason" in predictions.held_out:
            yield f"no predictions{level_text}: {predictions.held_out['reason']}"
            continue
        confidences = predictions.confidence[predictions.is_selected]
        expectation = f", expected precision {confidences.mean():.3f}" if len(confidences) else ""
        yield (
            f"predictions{level_text}: for {len(confidences):,} of {report.predicted_title_count:,} titles"
            f"{expectation} (minimum precision: {min_precision:g})"
        )
        yield f"  on held-out shows: {_format_held_out(predictions.held_out, min_precision)}"
        if isinstance(channels := predictions.held_out.get("channels"), dict):
            yield f"  on held-out channels: {_format_held_out(channels, min_precision)}"
    if report.damage:
        yield f"the guide is damaged ({report.damage}): the output ends at the damage"
    if written:
        yield f"The guide: {written}"
        if options.needs(GENRES):
            yield f"The table of genres for Kodi: {genres_file(written)}"
    elif report.examples:
        yield "Examples of predictions (confidence, title, categories):"
        for example in report.examples:
            names = ", ".join(example.categories.names)
            yield f"  {example.categories.confidence:.2f}  {example.title}: {names}"


def _format_held_out(held_out: Mapping[str, object], min_precision: float) -> str:
    """Formats the precision and coverage of the predictions for held-out titles."""
    figures = held_out[f"asked_{min_precision:g}"]
    assert isinstance(figures, dict)
    precision = "–" if figures["precision"] is None else f"{figures['precision']:.3f}"
    return f"precision {precision}, coverage {figures['coverage']:.3f} of {held_out['n']:,} titles"
