"""Words and tables about a run: the facts in the map's header, the report on the flow run's page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from storage.artifacts import Guide
from storage.readings import Told
from tasks.publish.headline import headline_table
from tasks.publish.verdict import Verdict

MEASURES = ("accuracy", "precision_at_10", "mrr", "macro_f1")
RIVALS = {"knn": "**GuideSpace k-NN**", "knn_oov": "… on titles with unseen words", "tfidf_knn": "TF-IDF k-NN", "tfidf_svm": "TF-IDF linear SVM", "majority": "majority class"}
MOST = 20  # anomalies and clusters that are listed
PROTOCOLS = {"unseen_title": "Titles never seen", "unseen_show": "Franchises never seen", "next_period": "What comes next in time"}


def facts_of(titles: pa.Table, scores: Mapping[str, Any]) -> dict[str, str]:
    """Label to text for the map's header."""
    first = pc.min(titles["first_airing"]).as_py()  # pyright: ignore[reportAttributeAccessIssue]
    shown = sum(split != "placeholder" for split in titles["split"].to_pylist())
    facts = {"Titles": f"{shown:,}", "Guide from": f"{first:%-d %B %Y}" if first else "–"}
    score = scores["protocols"]["unseen_title"]["title_only"]
    if score["n"]:
        facts["Right category for unseen titles"] = f"{score['knn']['accuracy']:.0%}"
        facts["Like-minded neighbours"] = f"{score['knn']['precision_at_10']:.0%}"
    return facts


@dataclass(frozen=True, kw_only=True)
class Report:
    """What is told of a night.

    Attributes:
        markdown: The page on the flow run.
        figures: Headline figures (headline.py).
        link: Page of the MLflow run; empty where MLflow has no server.
    """

    markdown: str
    figures: dict[str, float]
    link: str = ""


def report_markdown(
    guide: Guide,
    feeds: Sequence[Mapping[str, Any]],
    scores: Mapping[str, Any],
    verdict: Verdict,
    *,
    figures: Mapping[str, float],
    before: Mapping[str, float],
    anomalies: Sequence[str],
    clusters: Sequence[Mapping[str, Any]],
    places: Sequence[str],
    readings: Sequence[Told] = (),
) -> str:
    """The report as Markdown.

    Args:
        guide: Tonight's.
        feeds: Its feeds.parquet.
        scores: scores.json.
        verdict: The gate's.
        figures: Tonight's headline.
        before: That of the run before; empty where there is none.
        anomalies: What the data checks found odd, a line each.
        clusters: clusters.json: name and size are read.
        places: Where map, MLflow run and model are, a line of Markdown each.
        readings: What became of tonight's feeds.
    """
    lines = [
        f"## {'Champion' if verdict.champion else 'Not promoted'}: version {verdict.version}",
        "",
        verdict.reason[:1].upper() + verdict.reason[1:] + ".",
        "",
        *(f"- {place}" for place in places),
        "",
        *headline_table(figures, before),
        "",
        "### Feeds",
        "",
        "| feed | seen | stored | duplicates | rejected |",
        "| --- | ---: | ---: | ---: | ---: |",
        *(f"| {_cell(feed['source'])} | {feed['seen']:,} | {feed['stored']:,} | {feed['duplicates']:,} | {feed['rejected']:,} |" for feed in feeds),
        "",
        "The snapshot holds " + ", ".join(f"{guide.counts[name]:,} {name}" for name in ("programmes", "channels") if name in guide.counts) + ".",
        *_anomaly_lines(anomalies),
    ]
    odd = [
        f"- **{_cell(told.source)}**: " + ("; ".join(told.anomalies) or f"not read: {told.failed}")
        for told in readings
        if told.anomalies or told.failed
    ]
    lines += ["", "### Feeds that failed or are odd", "", *odd] if odd else []
    for protocol, title in PROTOCOLS.items():
        score = scores["protocols"][protocol]["title_only"]
        lines += ["", f"### {title} ({protocol}, {score['n']} titles)", ""]
        if not score["n"]:
            lines.append(score["reason"] + ".")
            continue
        lines += ["| | accuracy | precision@10 | MRR | macro-F1 |", "| --- | ---: | ---: | ---: | ---: |"]
        lines += [f"| {name} | {' | '.join(_number(score[rival].get(measure)) for measure in MEASURES)} |" for rival, name in RIVALS.items() if rival in score]
        if interval := score["knn"]["ci95"]["accuracy"]:  # none where all titles are one show's
            lines += ["", f"95 % interval of the k-NN's accuracy: {interval[0]:.3f} to {interval[1]:.3f}."]
    agreement = scores["clusters"]
    share, ami, stability = (_number(agreement[name]) for name in ("noise_share", "ami", "run_to_run_ari"))
    lines += [
        "",
        "### Clusters",
        "",
        f"{agreement['count']} clusters, {share} of titles in none; AMI {ami}, run-to-run ARI {stability}.",
    ]
    if clusters:
        largest = sorted(clusters, key=lambda cluster: -cluster["size"])[:MOST]
        lines += [
            "",
            "| the largest | titles |",
            "| --- | ---: |",
            *(f"| {_cell(cluster['name'])} | {cluster['size']:,} |" for cluster in largest),
        ]
    return "\n".join(lines)


def _anomaly_lines(anomalies: Sequence[str]) -> list[str]:
    """Section of the anomalies; one line where there are none."""
    if not anomalies:
        return ["", "The data checks found nothing unusual."]
    more = (
        [f"- … and {len(anomalies) - MOST:,} more, in the table guide-checks"]
        if len(anomalies) > MOST
        else []
    )
    return [
        "",
        f"### Anomalies ({len(anomalies):,})",
        "",
        *(f"- {_cell(anomaly)}" for anomaly in anomalies[:MOST]),
        *more,
    ]


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _cell(text: object) -> str:
    return str(text).replace("|", "\\|")
