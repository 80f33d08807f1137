"""Writes the Markdown report of a nightly run.

The report contains the decision about the new model, the main metrics, and tables of feeds, scores and
clusters.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from storage.artifacts import Guide
from tasks.scoring.protocols import PROTOCOLS

METRIC_NAMES = {  # names of the metrics of predictors, by key in scores.json
    "accuracy": "accuracy",
    "precision_at_k": "precision at k",
    "mrr": "MRR",
    "macro_f1": "macro-F1",
}
PREDICTORS = {  # names of compared predictors of categories, by key in scores.json
    "predictor": "**GuideSpace predictor**",
    "knn": "**GuideSpace k-NN**",
    "knn_oov": "… on titles with unseen words",
    "tfidf_knn": "TF-IDF k-NN",
    "l1_logistic": "TF-IDF logistic regression with L1",
    "tfidf_svm": "TF-IDF linear SVM",
    "tfidf_svm_sentence": "TF-IDF linear SVM with the sentence vector",
    "sentence_knn": "k-NN of sentence vectors",
    "majority": "majority class",
}
MAX_LISTED = 20  # maximum number of anomalies, and of clusters, in the report
HEADLINE = {  # names of the main metrics of a run, by key
    "quality": "quality, which the gate compares",
    "quality_difference": "difference from the champion",
    "accuracy": "accuracy, unseen titles",
    "precision_at_k": "precision at k, unseen titles",
    "mrr": "MRR, unseen titles",
    "accuracy_unseen_show": "accuracy, unseen franchises",
    "accuracy_next_period": "accuracy, next period",
    "clusters": "clusters",
    "noise_share": "share of titles in no cluster",
    "ami": "AMI of clusters and categories",
    "run_to_run_ari": "adjusted Rand index (ARI) of clusters between seeds",
    "titles": "titles on the map",
    "programmes": "programmes in the guide",
}
COUNTS = {"clusters", "titles", "programmes"}  # main metrics that are integers


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Decision whether a new model version (the challenger) replaces the served one (the champion)."""

    name: str = "guidespace-titles"  # name of the registered model; models:/NAME@champion is served
    version: str  # version of the challenger in the MLflow model registry
    champion: bool  # whether this version is now the champion
    reason: str  # sentence that explains the decision and contains the compared qualities
    quality: float | None = None  # challenger's mean quality on held-out titles, 0 to 1; None without titles
    difference: float | None = None  # quality of the challenger minus quality of the champion, if compared
    logged_model: str = ""  # id of the MLflow logged model from which the version was registered

    @property
    def model_uri(self) -> str:
        """URI of the version in the model registry."""
        return f"models:/{self.name}/{self.version}"

    @property
    def message(self) -> str:
        """One-line summary such as "version 2 is champion: quality 0.520, +0.010"."""
        state = f"version {self.version} is {'champion' if self.champion else 'not promoted'}"
        if self.quality is None or not (self.champion or self.difference is not None):
            return f"{state}: {self.reason}"
        change = f", {self.difference:+.3f}" if self.difference is not None else ""
        return f"{state}: quality {self.quality:.3f}{change}"


@dataclass(frozen=True, kw_only=True)
class RunReport:
    """Report of a nightly run as Markdown, with the main metrics of the run."""

    markdown: str  # text of the report, shown on the page of the Prefect flow run
    figures: dict[str, float]  # main metrics by name (HEADLINE)
    link: str = ""  # page of the MLflow run; "" without an MLflow server


def main_metrics(
    scores: Mapping[str, Any], verdict: Verdict, title_count: int, programme_count: int
) -> dict[str, float]:
    """Returns the main metrics of a run by name, in the order of HEADLINE. Undefined metrics are omitted.

    Args:
        scores: Content of scores.json. Its scores of the k-NN on titles without airing context are used.
        verdict: Decision about the model of the run.
        title_count: Number of titles on the map.
        programme_count: Number of programmes in the guide.
    """
    knn = {protocol: forms["title_only"].get("knn", {}) for protocol, forms in scores["protocols"].items()}
    values = {
        **knn["unseen_title"],
        **scores["clusters"],
        "quality": verdict.quality,
        "quality_difference": verdict.difference,
        "accuracy_unseen_show": knn["unseen_show"].get("accuracy"),
        "accuracy_next_period": knn["next_period"].get("accuracy"),
        "clusters": scores["clusters"]["count"],
        "titles": title_count,
        "programmes": programme_count,
    }
    return {name: float(values[name]) for name in HEADLINE if values.get(name) is not None}


def render_report(
    *,
    guide: Guide,
    feeds: Sequence[Mapping[str, Any]],
    scores: Mapping[str, Any],
    verdict: Verdict,
    figures: Mapping[str, float],
    previous_figures: Mapping[str, float],
    anomalies: Sequence[str],
    clusters: Sequence[Mapping[str, Any]],
    summary: Sequence[str],
) -> str:
    """Returns the report of a nightly run as Markdown.

    Args:
        guide: Guide of the run.
        feeds: Rows of feeds.parquet, with the numbers of programmes that were seen, stored and rejected.
        scores: Content of scores.json.
        verdict: Decision whether the new model is promoted.
        figures: Main metrics of this run by name (HEADLINE).
        previous_figures: Main metrics of the previous run; empty if there was none.
        anomalies: Warnings of the checks of the guide data.
        clusters: Entries of clusters.json.
        summary: Lines with the locations of the map, the MLflow run and the model, and with the choice of
            the sentence encoder; empty lines are omitted.
    """
    count_columns = ("seen", "stored", "duplicates", "rejected")
    lines = [
        f"## {'Champion' if verdict.champion else 'Not promoted'}: version {verdict.version}",
        "",
        verdict.reason[:1].upper() + verdict.reason[1:] + ".",
        "",
        *(f"- {line}" for line in summary if line),
        *_headline_table(figures, previous_figures),
        "",
        "### Feeds",
        *markdown_table(
            ("feed", *count_columns), [[feed["source"], *map(feed.get, count_columns)] for feed in feeds]
        ),
        "",
        "The snapshot contains {programmes:,} programmes and {channels:,} channels.".format(**guide.counts),
        "",
    ]
    if anomalies:
        lines += [f"### Anomalies ({len(anomalies):,})", ""]
        lines += [f"- {markdown_cell(text)}" for text in anomalies[:MAX_LISTED]]
    else:
        lines.append("The data checks found nothing unusual.")
    if len(anomalies) > MAX_LISTED:
        lines.append(f"- … and {len(anomalies) - MAX_LISTED:,} more, in the table guide-checks")
    for protocol, title in PROTOCOLS.items():
        score = scores["protocols"][protocol]["title_only"]
        lines += ["", f"### {title.capitalize()} ({protocol}, {score['n']} titles)", *_score_lines(score)]
    return "\n".join([*lines, *_cluster_lines(scores["clusters"], clusters)])


def _score_lines(score: Mapping[str, Any]) -> list[str]:
    """Returns Markdown lines with a table of the scores of all predictors on one held-out set."""
    if not score["n"]:
        return ["", score["reason"] + "."]
    scored_predictors = {
        predictor: name for predictor, name in PREDICTORS.items() if "accuracy" in score.get(predictor, ())
    }
    rows = [[name, *map(score[predictor].get, METRIC_NAMES)] for predictor, name in scored_predictors.items()]
    lines = markdown_table(("", *METRIC_NAMES.values()), rows)
    for predictor, name in PREDICTORS.items():
        if predictor in score and predictor not in scored_predictors:
            lines += ["", f"Not scored: {name} ({score[predictor]['reason']})."]
    if interval := score["knn"]["ci95"]["accuracy"]:  # None if all titles are of one show
        lines += ["", f"95 % interval of the accuracy of the k-NN: {interval[0]:.3f} to {interval[1]:.3f}."]
    return lines


def _cluster_lines(scores: Mapping[str, Any], clusters: Sequence[Mapping[str, Any]]) -> list[str]:
    """Returns Markdown lines with the number and the scores of clusters, and a table of the largest ones."""
    noise, ami, stability = (markdown_cell(scores[name]) for name in ("noise_share", "ami", "run_to_run_ari"))
    summary = f"{scores['count']} clusters, {noise} of titles in none; AMI {ami}, run-to-run ARI {stability}."
    lines = ["", "### Clusters", "", summary]
    if clusters:
        listed = sorted(clusters, key=lambda cluster: -cluster["size"])[:MAX_LISTED]
        lines += markdown_table(("largest", "titles"), [[item["name"], item["size"]] for item in listed])
    return lines


def _headline_table(figures: Mapping[str, float], previous: Mapping[str, float]) -> list[str]:
    """Returns a Markdown table of the main metrics of this run and the previous run, with the differences."""
    header = ("", "tonight", "last night", "change") if previous else ("", "tonight")
    rows = []
    for name, label in HEADLINE.items():
        number_format, number_type = ("+,.0f", int) if name in COUNTS else ("+.3f", float)
        values = [number_type(source[name]) if name in source else None for source in (figures, previous)]
        change = None if None in values else format(figures[name] - previous[name], number_format)
        if values != [None, None]:
            rows.append([label, *values, change][: len(header)])
    return markdown_table(header, rows)


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Returns an empty line and the lines of a Markdown table, in which all columns but the first are
    right-aligned.
    """
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return ["", *(f"| {' | '.join(map(markdown_cell, line))} |" for line in lines)]


def markdown_cell(value: object) -> str:
    """Formats a value for a Markdown table: floats with three decimals, integers with commas, None as "–"."""
    if isinstance(value, float | int):
        return f"{value:.3f}" if isinstance(value, float) else f"{value:,}"
    return "–" if value is None else str(value).replace("|", "\\|")
