"""Plots of held-out titles: what a rare word costs, and where k-NN and hyperplanes draw different borders.

Hyperplanes: one a category over the same vectors, fitted by ridge regression to ±1 (least squares),
so that both read the same space and differ only in the shape of the borders they draw.

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
from tasks.plotting import ABOVE, BLUE, GREEN, GREY, MUTED, ORANGE, make_figure, say
from tasks.scoring.protocols import Titles, predict_labels
from tasks.text.words import WORD

PROTOCOLS = {
    "unseen_title": ("titles never seen", BLUE),
    "unseen_show": ("franchises never seen", ORANGE),
    "next_period": ("what comes next in time", GREEN),
}
MOST_CATEGORIES = 25
ROW_PIXELS = 26
OUTSIDE = {"textposition": "outside", "cliponaxis": False}  # texts of bars
ABOUT = "%{text}<extra></extra>"  # on hover
RIDGE = 1.0
K = 10
BIN_STARTS = (0, 1, 2, 3, 5, 10, 20, 50, 100)
BIN_NAMES = ("unseen", "1", "2", "3–4", "5–9", "10–19", "20–49", "50–99", "100 or more")
# k-NN right, hyperplane right, name, colour, symbol: shapes differ too, so that no colour is needed
OUTCOMES = (
    (True, True, "both right", GREY, "circle"),
    (False, False, "both wrong", MUTED, "x"),
    (True, False, "only k-NN right", BLUE, "diamond"),
    (False, True, "only the hyperplane right", ORANGE, "triangle-up"),
)


@dataclass(frozen=True)
class Predictions:
    """The label (int64) that k-NN and the hyperplanes predict for held-out titles, and if it is right."""

    knn: np.ndarray
    plane: np.ndarray
    knn_right: np.ndarray
    plane_right: np.ndarray


def rarest_words(corpus: OpenCorpus, titles: Int[np.ndarray, " queries"]) -> Int[np.ndarray, " queries"]:
    """How many training titles hold the rarest word of each title; 0: none holds it, -1: no word."""
    never, held = np.iinfo(np.int64).max, np.zeros(len(corpus.kinds), dtype=np.int64)
    for block in row_blocks(len(corpus)):
        own = np.arange(block.start, block.stop)
        _, tokens = _words(corpus, own[corpus.split[own] == TRAIN])
        held += np.bincount(tokens, minlength=len(held))
    rarest = np.full(len(titles), never)
    place, tokens = _words(corpus, titles)
    np.minimum.at(rarest, place, held[tokens])
    rarest[rarest == never] = -1
    rarest[np.asarray(corpus.oov)[titles]] = 0
    return rarest


def _words(
    corpus: OpenCorpus, titles: Int[np.ndarray, " some"]
) -> tuple[Int[np.ndarray, " words"], Int[np.ndarray, " words"]]:
    """Places of some titles and the ids of their words, each word of a title once."""
    count, tokens = max(len(corpus.kinds), 1), corpus.tokens.take(titles)
    word = corpus.kinds[tokens.values] == WORD
    return np.divmod(np.unique(tokens.row_ids[word] * count + tokens.values[word].astype(np.int64)), count)


def predict_both(
    corpus: OpenCorpus, vectors: Float[np.ndarray, "titles dim"], queries: Int[np.ndarray, " queries"]
) -> Predictions:
    """Categories of labelled held-out titles (rows) by k-NN and by hyperplanes."""
    training = Titles.of(corpus).labelled("train")
    labels, count = corpus.labels.take(training), len(corpus.label_names)
    frequency = np.bincount(labels.values, minlength=count)
    knn = predict_labels(vectors[queries], vectors[training], labels, frequency, K).top
    points = np.column_stack([vectors[training], np.ones(len(training))]).astype(np.float64)
    wanted = np.where(labels.multi_hot(count), 1.0, -1.0)
    gram = points.T @ points + RIDGE * np.eye(points.shape[1])
    normals = np.linalg.solve(gram, points.T @ wanted)  # (dim + 1, labels)
    plane = (vectors[queries] @ normals[:-1] + normals[-1]).argmax(axis=1)
    truth, rows = corpus.labels.take(queries).multi_hot(count), np.arange(len(queries))
    return Predictions(knn, plane, truth[rows, knn], truth[rows, plane])


def plot_precision_by_rarest_word(
    rarest: Int[np.ndarray, " queries"], precision: Float[np.ndarray, " queries"]
) -> go.Figure:
    """Mean precision at k of held-out titles by how many training titles hold their rarest word.

    0 is a word that no training title holds; titles of -1 (no word) are left out.
    """
    along = {"title": "training titles that hold the rarest word", "type": "category"}
    up = {"title": "mean precision at k", "range": [0, 1]}
    figure = make_figure("Precision@10 by a title's rarest word", 380, along, up)
    known = (rarest >= 0) & ~np.isnan(precision)
    bins = np.searchsorted(BIN_STARTS, rarest[known], side="right") - 1
    of_bin = {name: precision[known][bins == number] for number, name in enumerate(BIN_NAMES)}
    shown = {name: values for name, values in of_bin.items() if len(values)}
    means = [float(values.mean()) for values in shown.values()]
    text = [f"{values.mean():.2f}<br>of {len(values):,}" for values in shown.values()]
    figure.add_bar(x=list(shown), y=means, marker={"color": BLUE}, text=text, **OUTSIDE)
    figure.update_traces(hovertemplate="%{x}: %{text}<extra></extra>")
    return figure if shown else say(figure, "No held-out title has a word and a category.")


def plot_borders(
    titles: Sequence[str],
    xy: Float[np.ndarray, "queries 2"],
    labels: Sequence[Sequence[str]],
    label_names: Sequence[str],
    predictions: Predictions,
) -> go.Figure:
    """Held-out titles at their places on the map, by who named a right category."""
    axes = {"visible": False}, {"visible": False, "scaleanchor": "x"}
    figure = make_figure("Where k-NN and hyperplanes disagree on held-out titles", 720, *axes, ABOVE)
    if not len(titles):
        return say(figure, "No held-out title on the map has a category.")
    for knn_right, plane_right, name, colour, symbol in OUTCOMES:
        chosen = (predictions.knn_right == knn_right) & (predictions.plane_right == plane_right)
        about, rows = [], np.flatnonzero(chosen).tolist()
        for row in rows:
            held, knn, plane = ", ".join(labels[row]), predictions.knn[row], predictions.plane[row]
            lines = titles[row], held, f"k-NN: {label_names[knn]}", f"hyperplane: {label_names[plane]}"
            title, *others = map(html.escape, lines)
            about.append("<br>".join([f"<b>{title}</b>", *others]))
        x, y = xy[rows].T.round(4).tolist()
        marker = {"color": colour, "symbol": symbol, "size": 5 if knn_right == plane_right else 8}
        look = {"mode": "markers", "marker": marker, "hovertemplate": ABOUT}
        if rows:
            figure.add_scattergl(x=x, y=y, name=f"{name} ({len(rows):,})", text=about, **look)
    differ = int((predictions.knn_right != predictions.plane_right).sum())
    text = f"exactly one is right for {differ:,} of {len(titles):,} titles"
    below = {"xref": "paper", "yref": "paper", "x": 0, "y": 0, "yanchor": "top"}
    figure.add_annotation(text=text, showarrow=False, font={"color": MUTED}, **below)
    return figure


def plot_category_accuracy(
    labels: Sequence[Sequence[str]], correct: Sequence[bool], protocols: Sequence[str]
) -> go.Figure:
    """For each category, the share of its held-out titles whose predicted category is one of theirs.

    A right prediction counts for each of the title's categories. The 25 categories with the most titles are
    shown, largest first. Each held-out set has a bar; all but the first one present start hidden.
    """
    answers: dict[str, dict[str, list[bool]]] = {protocol: {} for protocol in PROTOCOLS}
    sizes = Counter(name for names in labels for name in names)
    for names, right, protocol in zip(labels, correct, protocols, strict=True):
        for name in names:
            answers[protocol].setdefault(name, []).append(bool(right))
    shown = sorted(sizes, key=lambda name: (-sizes[name], name))[:MOST_CATEGORIES]
    along = {"range": [0, 1.12], "tickformat": ".0%", "tickvals": [0, 0.25, 0.5, 0.75, 1]}
    up = {"categoryorder": "array", "categoryarray": [html.escape(name) for name in reversed(shown)]}
    up |= {"automargin": True, "showgrid": False}
    figure = make_figure("Right category, by category", 130 + ROW_PIXELS * len(shown), along, up, ABOVE)
    figure.update_layout(bargap=0.3)
    for protocol, (about, colour) in PROTOCOLS.items():
        own = {name: answers[protocol][name] for name in shown if name in answers[protocol]}
        if own:
            figure.add_bar(
                x=[float(np.mean(given)) for given in own.values()],
                y=[html.escape(name) for name in own],
                orientation="h",
                name=about,
                marker={"color": colour},
                text=[f"{np.mean(given):.0%} of {len(given):,}" for given in own.values()],
                visible="legendonly" if figure.data else True,
                hovertemplate="%{y}: %{text}<extra></extra>",
                **OUTSIDE,
            )
    return figure if shown else say(figure, "No held-out title has a category.")
