"""The report of a run and the headline figures."""

import pytest

from storage.artifacts import Guide
from tasks.publish.report import HEADLINE, Verdict, main_metrics, render_report

GUIDE = Guide(path="artifacts/guide/x", digest="d", counts={"programmes": 1234, "channels": 5})
FEEDS = [{"source": "odd|name.xml", "seen": 1300, "stored": 1234, "duplicates": 60, "rejected": 6}]
NUMBERS = {"accuracy": 0.8, "precision_at_k": 0.75, "mrr": 0.9, "macro_f1": 0.5}
WORSE = Verdict(version="3", champion=False, reason="worse than the champion", quality=0.52, difference=-0.01)
FIRST = Verdict(version="1", champion=True, reason="there is no champion yet", quality=0.5)


def scores(interval):
    scored = {
        "n": 9,
        "knn": {**NUMBERS, "ci95": {"accuracy": interval}},
        "knn_oov": {"n": 0, "reason": "…"},
        "majority": {**NUMBERS, "precision_at_k": None},
        "sentence_knn": {"n": 0, "reason": "there are none"},
    }
    empty = {"n": 0, "reason": "the guide spans 1.0 days"}
    forms = {"unseen_title": scored, "unseen_show": scored, "next_period": empty}
    return {
        "protocols": {protocol: {"title_only": form} for protocol, form in forms.items()},
        "clusters": {"count": 0, "noise_share": 1.0, "ami": None, "run_to_run_ari": None},
    }


def report(interval=(0.7, 0.9), verdict=WORSE, previous_figures=(), anomalies=(), clusters=()):
    document = scores(interval)
    figures = main_metrics(document, verdict, title_count=900, programme_count=1234)
    return render_report(
        guide=GUIDE,
        feeds=FEEDS,
        scores=document,
        verdict=verdict,
        figures=figures,
        previous_figures=dict(previous_figures),
        anomalies=anomalies,
        clusters=clusters,
        summary=["Map: `map.html`", "", "sentence encoder e5"],
    )


def test_report_contains_verdict_feeds_and_scores():
    text = report()
    for fact in (
        "## Not promoted: version 3\n\nWorse than the champion.\n\n- Map: `map.html`\n",
        "| odd\\|name.xml | 1,300 | 1,234 | 60 | 6 |",
        "1,234 programmes and 5 channels",
        "| **GuideSpace k-NN** | 0.800 | 0.750 | 0.900 | 0.500 |",
        "| majority class | 0.800 | – | 0.900 | 0.500 |",
        "Not scored: k-NN of sentence vectors (there are none).",
        "0.700 to 0.900",
        "the guide spans 1.0 days.",
        "0 clusters, 1.000 of titles in none; AMI –, run-to-run ARI –.",
    ):
        assert fact in text


def test_titles_of_one_show_have_no_interval():
    text = report(None, FIRST)
    assert text.startswith("## Champion: version 1") and "interval" not in text


def test_figures_are_compared_with_the_previous_night():
    text = report(previous_figures={"accuracy": 0.81, "clusters": 3.0, "programmes": 1200.0, "ami": 0.4})
    for line in (
        "|  | tonight | last night | change |",
        "| difference from the champion | -0.010 | – | – |",
        "| accuracy, unseen titles | 0.800 | 0.810 | -0.010 |",
        "| clusters | 0 | 3 | -3 |",
        "| programmes in the guide | 1,234 | 1,200 | +34 |",
        "| AMI of clusters and categories | – | 0.400 | – |",
    ):
        assert line in text
    assert "last night" not in report()


def test_anomalies_and_clusters_are_listed_up_to_a_limit():
    anomalies = [f"uk.xml 2025-03-{day:02}: channel a|b fell silent" for day in range(1, 31)]
    clusters = [{"name": "News · Politics", "size": 7}, {"name": "Football | Cup", "size": 1200}]
    text = report(anomalies=anomalies, clusters=clusters)
    assert "- uk.xml 2025-03-20: channel a\\|b fell silent" in text and "2025-03-21" not in text
    assert "### Anomalies (30)" in text and "and 10 more" in text
    assert "| Football \\| Cup | 1,200 |\n| News · Politics | 7 |" in text


def test_headline_figures_are_in_order_without_undefined_ones():
    figures = main_metrics(scores(None), FIRST, title_count=9, programme_count=12)
    assert list(figures) == [name for name in HEADLINE if name in figures]
    assert figures["quality"] == 0.5 and figures["accuracy_unseen_show"] == 0.8
    assert not {"quality_difference", "ami", "accuracy_next_period"} & set(figures)


@pytest.mark.parametrize(
    ("champion", "quality", "difference", "message"),
    [
        (True, 0.52, 0.01, "version 2 is champion: quality 0.520, +0.010"),
        (False, 0.5, -0.02, "version 2 is not promoted: quality 0.500, -0.020"),
        (True, 0.5, None, "version 2 is champion: quality 0.500"),
        (True, None, None, "version 2 is champion: the reason"),
        (False, 0.5, None, "version 2 is not promoted: the reason"),
    ],
)
def test_verdict_in_one_line(champion, quality, difference, message):
    numbers = {"quality": quality, "difference": difference}
    assert Verdict(version="2", champion=champion, reason="the reason", **numbers).message == message
