"""Draws plots of held-out titles: precision by the rarest word of a title, and accuracy by category."""

import html
from collections import Counter
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from storage.arrays import row_blocks
from storage.formats.corpus import TRAIN, OpenCorpus
from storage.shapes import Float, Int
from tasks.plotting import BLUE, GREEN, LEGEND_ABOVE, ORANGE, make_figure, show_message
from tasks.scoring.protocols import PROTOCOLS
from tasks.text.words import WORD

PROTOCOL_COLOURS = {"unseen_title": BLUE, "unseen_show": ORANGE, "next_period": GREEN}
MAX_CATEGORIES = 25  # maximum number of categories in a plot
ROW_PIXELS = 26  # height of a bar with its margin
LABELS_OUTSIDE = {"textposition": "outside", "cliponaxis": False}  # writes labels next to bars
BIN_STARTS = (0, 1, 2, 3, 5, 10, 20, 50, 100)  # lowest number of training titles in each bin
BIN_NAMES = ("unseen", "1", "2", "3–4", "5–9", "10–19", "20–49", "50–99", "100 or more")


def rarest_word_counts(
    corpus: OpenCorpus, titles: Int[np.ndarray, " queries"]
) -> Int[np.ndarray, " queries"]:
    """Returns the number of training titles that contain the rarest word of each title; -1 without words."""
    no_word, title_counts = np.iinfo(np.int64).max, np.zeros(len(corpus.kinds), dtype=np.int64)
    for block in row_blocks(len(corpus)):
        rows = np.arange(block.start, block.stop)
        _, tokens = _distinct_words(corpus, rows[corpus.split[rows] == TRAIN])
        title_counts += np.bincount(tokens, minlength=len(title_counts))
    rarest = np.full(len(titles), no_word)
    positions, tokens = _distinct_words(corpus, titles)
    np.minimum.at(rarest, positions, title_counts[tokens])
    rarest[rarest == no_word] = -1
    rarest[np.asarray(corpus.oov)[titles]] = 0
    return rarest


def _distinct_words(
    corpus: OpenCorpus, titles: Int[np.ndarray, " titles"]
) -> tuple[Int[np.ndarray, " words"], Int[np.ndarray, " words"]]:
    """Returns the distinct pairs of an index in ``titles`` and the token id of a word, as two arrays."""
    count, tokens = max(len(corpus.kinds), 1), corpus.tokens.take(titles)
    is_word = corpus.kinds[tokens.values] == WORD
    return np.divmod(
        np.unique(tokens.row_ids[is_word] * count + tokens.values[is_word].astype(np.int64)), count
    )


def plot_precision_by_rarest_word(
    rarest: Int[np.ndarray, " queries"], precision: Float[np.ndarray, " queries"]
) -> go.Figure:
    """Draws the mean precision at k of held-out titles, grouped by the frequency of their rarest word.

    Args:
        rarest: Result of ``rarest_word_counts``; titles without words (-1) are omitted.
        precision: Precision at k of each title; titles with NaN are omitted.
    """
    xaxis = {"title": "training titles with the rarest word", "type": "category"}
    yaxis = {"title": "mean precision at k", "range": [0, 1]}
    figure = make_figure("Precision at k by the rarest word of a title", 380, xaxis, yaxis)
    is_scored = (rarest >= 0) & ~np.isnan(precision)
    bins = np.searchsorted(BIN_STARTS, rarest[is_scored], side="right") - 1
    by_bin = {name: precision[is_scored][bins == number] for number, name in enumerate(BIN_NAMES)}
    shown_bins = {name: values for name, values in by_bin.items() if len(values)}
    means = [float(values.mean()) for values in shown_bins.values()]
    text = [f"{values.mean():.2f}<br>of {len(values):,}" for values in shown_bins.values()]
    figure.add_bar(x=list(shown_bins), y=means, marker={"color": BLUE}, text=text, **LABELS_OUTSIDE)
    figure.update_traces(hovertemplate="%{x}: %{text}<extra></extra>")
    return figure if shown_bins else show_message(figure, "No held-out title has a word and a category.")


def plot_category_accuracy(
    labels: Sequence[Sequence[str]], correct: Sequence[bool], protocols: Sequence[str]
) -> go.Figure:
    """Draws the share of correct predictions in each of the MAX_CATEGORIES largest categories.

    The prediction for a title counts in all categories of the title. A category has a bar for each held-out
    set (protocol). Initially, only the bars of the first held-out set are visible.

    Args:
        labels: Categories of each held-out title.
        correct: Whether the prediction for each title is correct.
        protocols: Name of the held-out set of each title.
    """
    outcomes: dict[str, dict[str, list[bool]]] = {protocol: {} for protocol in PROTOCOLS}
    sizes = Counter(name for names in labels for name in names)
    for names, is_correct, protocol in zip(labels, correct, protocols, strict=True):
        for name in names:
            outcomes[protocol].setdefault(name, []).append(bool(is_correct))
    categories = sorted(sizes, key=lambda name: (-sizes[name], name))[:MAX_CATEGORIES]
    xaxis = {"range": [0, 1.12], "tickformat": ".0%", "tickvals": [0, 0.25, 0.5, 0.75, 1]}
    yaxis = {"categoryorder": "array", "categoryarray": [html.escape(name) for name in reversed(categories)]}
    yaxis |= {"automargin": True, "showgrid": False}
    figure = make_figure(
        "Accuracy by category", 130 + ROW_PIXELS * len(categories), xaxis, yaxis, LEGEND_ABOVE
    )
    figure.update_layout(bargap=0.3)
    for protocol, protocol_name in PROTOCOLS.items():
        by_category = {name: outcomes[protocol][name] for name in categories if name in outcomes[protocol]}
        if by_category:
            figure.add_bar(
                x=[float(np.mean(values)) for values in by_category.values()],
                y=[html.escape(name) for name in by_category],
                orientation="h",
                name=protocol_name,
                marker={"color": PROTOCOL_COLOURS[protocol]},
                text=[f"{np.mean(values):.0%} of {len(values):,}" for values in by_category.values()],
                visible="legendonly" if figure.data else True,
                hovertemplate="%{y}: %{text}<extra></extra>",
                **LABELS_OUTSIDE,
            )
    return figure if categories else show_message(figure, "No held-out title has a category.")
