"""Writes the report of a run as Markdown: verdict, main figures, feeds, anomalies, scores and clusters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from storage.artifacts import Guide
from tasks.scoring.protocols import PROTOCOLS

MEASURES = {"accuracy": "accuracy", "precision_at_k": "precision at k", "mrr": "MRR", "macro_f1": "macro-F1"}
RIVALS = {
    "knn": "**GuideSpace k-NN**",
    "knn_oov": "… on titles with unseen words",
    "tfidf_knn": "TF-IDF k-NN",
    "l1_logistic": "TF-IDF logistic regression with L1",
    "tfidf_svm": "TF-IDF linear SVM",
    "tfidf_svm_sentence": "TF-IDF linear SVM with the sentence vector",
    "sentence_knn": "k-NN of sentence vectors",
    "majority": "majority class",
}
MAX_LISTED = 20  # maximum number of listed anomalies and of listed clusters
HEADLINE = {
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
    "run_to_run_ari": "run-to-run ARI of clusters",
    "titles": "titles on the map",
    "programmes": "programmes in the guide",
}
INTEGERS = {"clusters", "titles", "programmes"}


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What the gate decided about a challenger, and why."""

    name: str = "guidespace-titles"  # of the registered model; models:/NAME@champion is served
    version: str  # of the challenger in the registry
    champion: bool  # whether this version is the champion now
    reason: str  # sentence with the compared qualities
    quality: float | None = None  # mean over held-out titles, 0 to 1; None without held-out titles
    difference: float | None = None  # quality minus that of the champion; None if not compared
    logged_model: str = ""  # id of the logged model in MLflow to which the version refers

    @property
    def model_uri(self) -> str:
        """URI of the version in the model registry."""
        return f"models:/{self.name}/{self.version}"

    @property
    def message(self) -> str:
        """One line such as "version 2 is champion: quality 0.520, +0.010"."""
        state = f"version {self.version} is {'champion' if self.champion else 'not promoted'}"
        if self.quality is None or not (self.champion or self.difference is not None):
            return f"{state}: {self.reason}"
        change = f", {self.difference:+.3f}" if self.difference is not None else ""
        return f"{state}: quality {self.quality:.3f}{change}"


@dataclass(frozen=True, kw_only=True)
class RunReport:
    """The report of a run."""

    markdown: str  # shown on the page of the flow run
    figures: dict[str, float]  # headline figures
    link: str = ""  # page of the MLflow run; "" without an MLflow server


def headline(scores: Mapping[str, Any], verdict: Verdict, titles: int, programmes: int) -> dict[str, float]:
    """Returns the headline figures by name, in the order of HEADLINE; undefined ones are omitted.

    The scores among them are those of the k-NN on the title without airing context.
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
        "titles": titles,
        "programmes": programmes,
    }
    return {name: float(values[name]) for name in HEADLINE if values.get(name) is not None}


def run_report_markdown(
    guide: Guide,
    feeds: Sequence[Mapping[str, Any]],
    scores: Mapping[str, Any],
    verdict: Verdict,
    figures: Mapping[str, float],
    previous_figures: Mapping[str, float],
    anomalies: Sequence[str],
    clusters: Sequence[Mapping[str, Any]],
    links: Sequence[str],
) -> str:
    """Writes the report as Markdown.

    Args:
        guide: Guide of the run.
        feeds: Rows of feeds.parquet.
        scores: Content of scores.json.
        verdict: Verdict on the challenger.
        figures: Headline figures of this run.
        previous_figures: Headline figures of the previous run; empty if there was none.
        anomalies: Messages of the data checks.
        clusters: Entries of clusters.json.
        links: Lines that say where the map, the MLflow run and the model are.
    """
    counts = ("seen", "stored", "duplicates", "rejected")
    lines = [
        f"## {'Champion' if verdict.champion else 'Not promoted'}: version {verdict.version}",
        "",
        verdict.reason[:1].upper() + verdict.reason[1:] + ".",
        "",
        *(f"- {link}" for link in links),
        *_headline_table(figures, previous_figures),
        "",
        "### Feeds",
        *markdown_table(("feed", *counts), [[feed["source"], *map(feed.get, counts)] for feed in feeds]),
        "",
        "The snapshot contains {programmes:,} programmes, {channels:,} channels.".format(**guide.counts),
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
    if not score["n"]:
        return ["", score["reason"] + "."]
    scored = {rival: name for rival, name in RIVALS.items() if "accuracy" in score.get(rival, ())}
    rows = [[name, *map(score[rival].get, MEASURES)] for rival, name in scored.items()]
    lines = markdown_table(("", *MEASURES.values()), rows)
    for rival, name in RIVALS.items():
        if rival in score and rival not in scored:
            lines += ["", f"Not scored: {name} ({score[rival]['reason']})."]
    if interval := score["knn"]["ci95"]["accuracy"]:  # None if all titles are of one show
        lines += ["", f"95 % interval of the accuracy of the k-NN: {interval[0]:.3f} to {interval[1]:.3f}."]
    return lines


def _cluster_lines(scores: Mapping[str, Any], clusters: Sequence[Mapping[str, Any]]) -> list[str]:
    noise, ami, stability = (markdown_cell(scores[name]) for name in ("noise_share", "ami", "run_to_run_ari"))
    about = f"{scores['count']} clusters, {noise} of titles in none; AMI {ami}, run-to-run ARI {stability}."
    lines = ["", "### Clusters", "", about]
    if clusters:
        largest = sorted(clusters, key=lambda cluster: -cluster["size"])[:MAX_LISTED]
        lines += markdown_table(("largest", "titles"), [[item["name"], item["size"]] for item in largest])
    return lines


def _headline_table(figures: Mapping[str, float], previous: Mapping[str, float]) -> list[str]:
    head = ("", "tonight", "last night", "change") if previous else ("", "tonight")
    rows = []
    for name, label in HEADLINE.items():
        form, kind = ("+,.0f", int) if name in INTEGERS else ("+.3f", float)
        values = [kind(source[name]) if name in source else None for source in (figures, previous)]
        change = None if None in values else format(figures[name] - previous[name], form)
        if values != [None, None]:
            rows.append([label, *values, change][: len(head)])
    return markdown_table(head, rows)


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Returns the lines of a table after an empty line; all columns but the first are aligned right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return ["", *(f"| {' | '.join(map(markdown_cell, line))} |" for line in lines)]


def markdown_cell(value: object) -> str:
    """Formats a value for a table: three decimals, thousands separators, "–" for None."""
    if isinstance(value, float | int):
        return f"{value:.3f}" if isinstance(value, float) else f"{value:,}"
    return "–" if value is None else str(value).replace("|", "\\|")
