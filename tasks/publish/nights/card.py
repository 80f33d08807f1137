"""Writes the model card of a registered model version: training data, scores and limits.

References: Mitchell et al., *Model Cards for Model Reporting*, FAT* 2019, https://arxiv.org/abs/1810.03993.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from storage.artifacts import Corpus, Guide
from tasks.publish.report import markdown_cell, markdown_table
from tasks.scoring.protocols import PROTOCOLS

MAX_FEEDS, MAX_LANGUAGES = 10, 5  # maximum numbers of feeds and of languages in the card
SHOWN_DIGITS = 12  # number of hexadecimal digits of a digest that the card shows


def model_card(
    guide: Guide,
    corpus: Corpus,
    *,
    feeds: Sequence[Mapping[str, Any]],
    span: tuple[datetime, datetime],
    languages: Sequence[str],
    scores: Mapping[str, Any],
    oov_share: float,
) -> str:
    """Returns the model card as Markdown.

    Args:
        guide: Guide of the run.
        corpus: Corpus of the run.
        feeds: Rows of feeds.parquet in the order in which feeds were read. A feed that was read several times
            has several rows.
        span: Start times of the first and the last programme, UTC.
        languages: Language code of each title; "" if unknown.
        scores: Content of scores.json.
        oov_share: Share of held-out titles with a word that no training title contains.
    """
    counts = corpus.counts
    sources: dict[str, list[Mapping[str, Any]]] = {}
    for feed in feeds:
        sources.setdefault(feed["source"], []).append(feed)
    feed_lines = [_feed_line(*item) for item in list(sources.items())[-MAX_FEEDS:]]
    if len(sources) > MAX_FEEDS:
        feed_lines.append(f"- … and {len(sources) - MAX_FEEDS:,} more")
    language_counts = Counter(filter(None, languages)).most_common(MAX_LANGUAGES)
    shares = ", ".join(f"{name} {count / len(languages):.0%}" for name, count in language_counts)
    title_only_scores = {name: protocol["title_only"] for name, protocol in scores["protocols"].items()}
    accuracy = title_only_scores["unseen_title"].get("knn_oov", {}).get("accuracy")
    oov_accuracy = (
        f"; on the unseen titles among them, accuracy is {accuracy:.3f}" if accuracy is not None else ""
    )
    header = ("held out, title alone", "titles", "accuracy", "95 %", "precision at k", "MRR")
    lines = [
        "## Model card",
        "",
        f"Data: guide `{guide.digest[:SHOWN_DIGITS]}`, {_count(guide.counts['programmes'], 'programme')} of "
        f"{_count(guide.counts['channels'], 'channel')} from {span[0]:%Y-%m-%d} to {span[1]:%Y-%m-%d}; "
        f"{counts['titles']:,} titles, {counts['labelled_training_titles']:,} of them training titles with "
        "categories." + f" Languages: {shares}." * bool(shares),
        "",
        *feed_lines,
        *markdown_table(
            header, [_score_row(name.capitalize(), title_only_scores[key]) for key, name in PROTOCOLS.items()]
        ),
        "",
        "Limits:",
        "",
        f"- The model predicts only the {counts['labels']:,} categories of the guide.",
        f"- {oov_share:.0%} of the held-out titles have a word that no training title has{oov_accuracy}.",
        "- The vector of a title outside the guide depends only on its words (and its sentence vector), not "
        "on its schedule. Languages that do not occur in the guide are not supported.",
        "- The scores are valid for these feeds and days, not for other guides. The categories come from the "
        "feeds and include their mistakes.",
    ]
    return "\n".join(lines)


def _feed_line(source: str, imports: Sequence[Mapping[str, Any]]) -> str:
    """Returns a Markdown list item about a feed; ``imports`` are the rows of its readings."""
    programmes = sum(row["stored"] for row in imports)
    digest = imports[-1]["content_digest"][:SHOWN_DIGITS]
    text = f"- `{source}`: {_count(programmes, 'programme')}, content `{digest}`"
    return f"{text}, last of {len(imports):,} readings" if imports[1:] else text


def _count(number: int, noun: str) -> str:
    """Returns a number with a noun in the singular or plural: "1 channel", "2 channels"."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _score_row(title: str, score: Mapping[str, Any]) -> list[object]:
    """Returns a table row with the scores of the k-NN on a held-out set."""
    knn = score.get("knn", {})
    bounds = (knn.get("ci95") or {}).get("accuracy")
    interval = " to ".join(map(markdown_cell, bounds)) if bounds else None
    return [title, score["n"], knn.get("accuracy"), interval, knn.get("precision_at_k"), knn.get("mrr")]
