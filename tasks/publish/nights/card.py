"""The model card of a version: what it was made of, how it scored, what it cannot do.

After Mitchell et al., *Model Cards for Model Reporting*, FAT* 2019, https://arxiv.org/abs/1810.03993.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from storage.artifacts import Corpus, Guide
from tasks.publish.report import PROTOCOLS

FEEDS, LANGUAGES = 10, 5  # that are named
DIGITS = 12  # of a digest


def model_card(
    guide: Guide,
    corpus: Corpus,
    feeds: Sequence[Mapping[str, Any]],
    span: tuple[datetime, datetime],
    languages: Sequence[str],
    scores: Mapping[str, Any],
    oov_share: float,
) -> str:
    """The card as Markdown.

    Args:
        guide: Of the night.
        corpus: Of the night.
        feeds: source, content_digest and stored of each reading, in their order.
        span: First and last start of a programme, UTC.
        languages: Of each title.
        scores: The scores document.
        oov_share: Share of held-out titles with a word that no training title has.
    """
    held, counts = guide.counts, corpus.counts
    sources: dict[str, list[Mapping[str, Any]]] = {}
    for feed in feeds:
        sources.setdefault(feed["source"], []).append(feed)
    named = [_source(*item) for item in list(sources.items())[-FEEDS:]]
    more = len(sources) - len(named)
    spoken = Counter(filter(None, languages)).most_common(LANGUAGES)
    shares = ", ".join(f"{name} {count / len(languages):.0%}" for name, count in spoken)
    forms = {name: protocol["title_only"] for name, protocol in scores["protocols"].items()}
    unseen = forms["unseen_title"].get("knn_oov", {}).get("accuracy")
    hard = f", and on those of unseen titles accuracy is {unseen:.3f}" if unseen is not None else ""
    lines = [
        "## Model card",
        "",
        f"Data: guide `{guide.digest[:DIGITS]}`, {held['programmes']:,} programmes of {held['channels']:,} "
        f"channels from {span[0]:%Y-%m-%d} to {span[1]:%Y-%m-%d}; {counts['titles']:,} titles, "
        f"{counts['labelled_training_titles']:,} of them trained on with categories. Languages: {shares}.",
        "",
        *named,
        *([f"- … and {more:,} more"] if more else []),
        "",
        "| held out, the title alone | titles | accuracy | 95 % | precision at k | MRR |",
        "| --- | --- | --- | --- | --- | --- |",
        *(_row(title, forms[protocol]) for protocol, title in PROTOCOLS.items()),
        "",
        "Limits:",
        "",
        f"- It predicts {counts['labels']:,} categories and no other.",
        f"- {oov_share:.0%} of the held-out titles have a word that training has not seen{hard}.",
        "- A title that the guide lacks is placed by its words (and its sentence vector) alone, not by how "
        "it airs; a language that the guide lacks is not known.",
        "- The scores are of these feeds and days, and say nothing of other guides. The categories are the "
        "feeds' own, with their mistakes.",
    ]
    return "\n".join(lines)


def _source(source: str, readings: Sequence[Mapping[str, Any]]) -> str:
    stored, digest = sum(one["stored"] for one in readings), readings[-1]["content_digest"][:DIGITS]
    told = f", the last of {len(readings):,} readings" if readings[1:] else ""
    return f"- `{source}`: {stored:,} programmes, content `{digest}`{told}"


def _row(title: str, score: Mapping[str, Any]) -> str:
    knn = score.get("knn", {})
    interval = (knn.get("ci95") or {}).get("accuracy")
    cells = [
        f"{score['n']:,}",
        _figure(knn.get("accuracy")),
        f"{interval[0]:.3f} to {interval[1]:.3f}" if interval else "–",
        _figure(knn.get("precision_at_k")),
        _figure(knn.get("mrr")),
    ]
    return f"| {title} | {' | '.join(cells)} |"


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
