"""The report of a run: the verdict, the headline figures, and the page on the flow run."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from storage.artifacts import Guide

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
MOST = 20  # anomalies and clusters that are listed
PROTOCOLS = {
    "unseen_title": "Titles never seen",
    "unseen_show": "Franchises never seen",
    "next_period": "What comes next in time",
}
HEADLINE = {
    "quality": "quality, by which the gate decides",
    "quality_difference": "quality less the champion's",
    "accuracy": "accuracy, titles never seen",
    "precision_at_k": "precision at k, titles never seen",
    "mrr": "MRR, titles never seen",
    "accuracy_unseen_show": "accuracy, franchises never seen",
    "accuracy_next_period": "accuracy, what comes next in time",
    "clusters": "clusters",
    "noise_share": "share of titles in no cluster",
    "ami": "AMI of clusters and categories",
    "run_to_run_ari": "run-to-run ARI of clusters",
    "titles": "titles on the map",
    "programmes": "programmes in the guide",
}
WHOLE = {"clusters", "titles", "programmes"}


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What became of a challenger."""

    name: str = "guidespace-titles"  # of the registered model: what serves is models:/NAME@champion
    version: str
    champion: bool  # whether that version serves now
    reason: str  # in plain words with the numbers
    quality: float | None = None  # mean on held-out titles, 0 to 1; None without any
    difference: float | None = None  # to the champion on the same titles; None where nothing was compared
    logged_model: str = ""  # id of MLflow's logged model behind the version

    @property
    def model_uri(self) -> str:
        """URI of the version in the model registry."""
        return f"models:/{self.name}/{self.version}"

    @property
    def message(self) -> str:
        """One line: "version 2 is champion: quality 0.520, +0.010"."""
        state = f"version {self.version} is {'champion' if self.champion else 'not promoted'}"
        if self.quality is None or not (self.champion or self.difference is not None):
            return f"{state}: {self.reason}"
        change = f", {self.difference:+.3f}" if self.difference is not None else ""
        return f"{state}: quality {self.quality:.3f}{change}"


@dataclass(frozen=True, kw_only=True)
class Report:
    """The report of a run."""

    markdown: str  # the page on the flow run
    figures: dict[str, float]  # of the headline
    link: str = ""  # page of the MLflow run; empty where MLflow has no server


def headline(scores: Mapping[str, Any], verdict: Verdict, titles: int, programmes: int) -> dict[str, float]:
    """Name to value of the k-NN on the title alone, in the order of HEADLINE; None is left out."""
    knn = {protocol: forms["title_only"].get("knn", {}) for protocol, forms in scores["protocols"].items()}
    found = {
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
    return {name: float(found[name]) for name in HEADLINE if found.get(name) is not None}


def report_markdown(
    guide: Guide,
    feeds: Sequence[Mapping[str, Any]],
    scores: Mapping[str, Any],
    verdict: Verdict,
    figures: Mapping[str, float],
    before: Mapping[str, float],
    anomalies: Sequence[str],
    clusters: Sequence[Mapping[str, Any]],
    places: Sequence[str],
) -> str:
    """The report as Markdown, from scores.json, the feeds and the clusters.

    ``figures`` and ``before`` are the headline of this run and of the run before (empty where there is none),
    ``anomalies`` those of the data checks, ``places`` where map, MLflow run and model are.
    """
    counts = ("seen", "stored", "duplicates", "rejected")
    held = ", ".join(f"{guide.counts[name]:,} {name}" for name in ("programmes", "channels"))
    lines = [
        f"## {'Champion' if verdict.champion else 'Not promoted'}: version {verdict.version}",
        "",
        verdict.reason[:1].upper() + verdict.reason[1:] + ".",
        "",
        *(f"- {place}" for place in places),
        *_headline_table(figures, before),
        "",
        "### Feeds",
        *_table(("feed", *counts), ([feed["source"], *(feed[name] for name in counts)] for feed in feeds)),
        "",
        f"The snapshot holds {held}.",
        "",
    ]
    if anomalies:
        lines += [f"### Anomalies ({len(anomalies):,})", "", *(f"- {_cell(one)}" for one in anomalies[:MOST])]
    else:
        lines.append("The data checks found nothing unusual.")
    if len(anomalies) > MOST:
        lines.append(f"- … and {len(anomalies) - MOST:,} more, in the table guide-checks")
    for protocol, title in PROTOCOLS.items():
        score = scores["protocols"][protocol]["title_only"]
        lines += ["", f"### {title} ({protocol}, {score['n']} titles)"]
        if not score["n"]:
            lines += ["", score["reason"] + "."]
            continue
        scored = {rival: name for rival, name in RIVALS.items() if "accuracy" in score.get(rival, ())}
        rows = ([name, *map(score[rival].get, MEASURES)] for rival, name in scored.items())
        lines += _table(("", *MEASURES.values()), rows)
        for rival in [rival for rival in RIVALS if rival in score and rival not in scored]:
            lines += ["", f"Not scored: {RIVALS[rival]} ({score[rival]['reason']})."]
        if interval := score["knn"]["ci95"]["accuracy"]:  # none where all titles are one show's
            lines += ["", f"95 % interval of the k-NN's accuracy: {interval[0]:.3f} to {interval[1]:.3f}."]
    agreement = scores["clusters"]
    share, ami, stability = (_cell(agreement[name]) for name in ("noise_share", "ami", "run_to_run_ari"))
    about = f"{share} of titles in none; AMI {ami}, run-to-run ARI {stability}."
    lines += ["", "### Clusters", "", f"{agreement['count']} clusters, {about}"]
    if clusters:
        largest = sorted(clusters, key=lambda cluster: -cluster["size"])[:MOST]
        lines += _table(("the largest", "titles"), ([one["name"], one["size"]] for one in largest))
    return "\n".join(lines)


def _headline_table(figures: Mapping[str, float], before: Mapping[str, float]) -> list[str]:
    head = ("", "tonight", "last night", "change") if before else ("", "tonight")
    rows = []
    for name, label in HEADLINE.items():
        now, then = figures.get(name), before.get(name)
        form, kind = ("+,.0f", int) if name in WHOLE else ("+.3f", float)
        values = [None if value is None else kind(value) for value in (now, then)]
        change = None if now is None or then is None else format(now - then, form)
        if values != [None, None]:
            rows.append([label, *values, change][: len(head)])
    return _table(head, rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return ["", *(f"| {' | '.join(map(_cell, line))} |" for line in lines)]


def _cell(value: object) -> str:
    if isinstance(value, float | int):
        return f"{value:.3f}" if isinstance(value, float) else f"{value:,}"
    return "–" if value is None else str(value).replace("|", "\\|")
