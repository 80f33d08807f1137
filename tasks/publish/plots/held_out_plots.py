"""Draws plots of held-out titles: precision by rarest word, accuracy by category, k-NN against hyperplanes.

k-NN is compared with a linear classifier on the same vectors, which has one hyperplane per category. A
hyperplane is fitted by ridge regression to 1 for titles of the category and to −1 for all other titles.

References: Rifkin, Yeo, Poggio, Regularized least-squares classification, 2003.
"""

import html
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from storage.arrays import row_blocks
from storage.formats.corpus import TRAIN, OpenCorpus
from storage.shapes import Float, Int
from tasks.plotting import BLUE, GREEN, GREY, LEGEND_ABOVE, MUTED, ORANGE, make_figure, show_message
from tasks.scoring.protocols import PROTOCOLS, CorpusTitles, predict_labels
from tasks.text.words import WORD

PROTOCOL_COLOURS = {"unseen_title": BLUE, "unseen_show": ORANGE, "next_period": GREEN}
MAX_CATEGORIES = 25  # maximum number of categories in a plot
ROW_PIXELS = 26  # height of a bar with its margin
LABELS_OUTSIDE = {"textposition": "outside", "cliponaxis": False}  # writes labels next to bars
RIDGE = 1.0  # penalty of the ridge regression
NEIGHBOURS = 10  # number of neighbours that vote
BIN_STARTS = (0, 1, 2, 3, 5, 10, 20, 50, 100)  # lowest number of training titles in each bin
BIN_NAMES = ("unseen", "1", "2", "3–4", "5–9", "10–19", "20–49", "50–99", "100 or more")
OUTCOMES = (  # whether k-NN is correct, whether the hyperplane is correct, name, colour, symbol
    (True, True, "both correct", GREY, "circle"),
    (False, False, "both wrong", MUTED, "x"),
    (True, False, "only k-NN correct", BLUE, "diamond"),
    (False, True, "only the hyperplane correct", ORANGE, "triangle-up"),
)


@dataclass(frozen=True)
class ComparedPredictions:
    """Predictions of k-NN and of hyperplanes for the same held-out titles. Arrays have an entry per title."""

    knn: np.ndarray  # int64, id of the label that k-NN predicts
    plane: np.ndarray  # int64, id of the label whose hyperplane has the largest value
    knn_correct: np.ndarray  # bool, whether ``knn`` is a label of the title
    plane_correct: np.ndarray  # bool, whether ``plane`` is a label of the title


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


def predict_with_both_classifiers(
    corpus: OpenCorpus, vectors: Float[np.ndarray, "titles dim"], queries: Int[np.ndarray, " queries"]
) -> ComparedPredictions:
    """Predicts the categories of labelled held-out titles by k-NN and by hyperplanes.

    Args:
        corpus: Corpus with labels and the split into training and held-out titles.
        vectors: Vectors of all titles of the corpus.
        queries: Rows of the held-out titles.
    """
    training = CorpusTitles.from_corpus(corpus).labelled("train")
    labels, count = corpus.labels.take(training), len(corpus.label_names)
    label_counts = np.bincount(labels.values, minlength=count)
    knn = predict_labels(vectors[queries], vectors[training], labels, label_counts, NEIGHBOURS).top
    points = np.column_stack([vectors[training], np.ones(len(training))]).astype(np.float64)
    targets = np.where(labels.multi_hot(count), 1.0, -1.0)
    gram = points.T @ points + RIDGE * np.eye(points.shape[1])
    normals = np.linalg.solve(gram, points.T @ targets)  # (dim + 1, labels)
    plane = (vectors[queries] @ normals[:-1] + normals[-1]).argmax(axis=1)
    truth, rows = corpus.labels.take(queries).multi_hot(count), np.arange(len(queries))
    return ComparedPredictions(knn, plane, truth[rows, knn], truth[rows, plane])


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


def plot_disagreement(
    titles: Sequence[str],
    xy: Float[np.ndarray, "queries 2"],
    labels: Sequence[Sequence[str]],
    label_names: Sequence[str],
    predictions: ComparedPredictions,
) -> go.Figure:
    """Draws held-out titles on the map, coloured by whether k-NN and the hyperplanes predict them correctly.

    Args:
        titles: Held-out titles.
        xy: Positions of the titles on the map.
        labels: Labels of each title.
        label_names: Names of the label ids in ``predictions``.
        predictions: Predictions of k-NN and of hyperplanes for the titles.
    """
    axes = {"visible": False}, {"visible": False, "scaleanchor": "x"}
    figure = make_figure("Where k-NN and hyperplanes disagree on held-out titles", 720, *axes, LEGEND_ABOVE)
    if not len(titles):
        return show_message(figure, "No held-out title on the map has a category.")
    for knn_correct, plane_correct, name, colour, symbol in OUTCOMES:
        is_selected = (predictions.knn_correct == knn_correct) & (predictions.plane_correct == plane_correct)
        texts, rows = [], np.flatnonzero(is_selected).tolist()
        for row in rows:
            knn, plane = label_names[predictions.knn[row]], label_names[predictions.plane[row]]
            lines = titles[row], ", ".join(labels[row]), f"k-NN: {knn}", f"hyperplane: {plane}"
            title, *details = map(html.escape, lines)
            texts.append("<br>".join([f"<b>{title}</b>", *details]))
        if rows:
            x, y = xy[rows].T.round(4).tolist()
            figure.add_scattergl(
                x=x,
                y=y,
                name=f"{name} ({len(rows):,})",
                text=texts,
                mode="markers",
                marker={"color": colour, "symbol": symbol, "size": 5 if knn_correct == plane_correct else 8},
                hovertemplate="%{text}<extra></extra>",
            )
    disagreement_count = int((predictions.knn_correct != predictions.plane_correct).sum())
    text = f"exactly one classifier is correct for {disagreement_count:,} of {len(titles):,} titles"
    below_plot = {"xref": "paper", "yref": "paper", "x": 0, "y": 0, "yanchor": "top"}
    figure.add_annotation(text=text, showarrow=False, font={"color": MUTED}, **below_plot)
    return figure


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
