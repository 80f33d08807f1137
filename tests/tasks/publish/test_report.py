"""The report of a run, also of one with hardly anything held out."""

import pytest

from storage.artifacts import Guide
from tasks.publish.report import HEADLINE, Verdict, headline, report_markdown

GUIDE = Guide(path="artifacts/guide/x", digest="d", counts={"programmes": 1234, "channels": 5})
FEEDS = [{"source": "odd|name.xml", "seen": 1300, "stored": 1234, "duplicates": 60, "rejected": 6}]
NUMBERS = {"accuracy": 0.8, "precision_at_k": 0.75, "mrr": 0.9, "macro_f1": 0.5}


def scores(interval):
    known = {
        "n": 9,
        "knn": {**NUMBERS, "ci95": {"accuracy": interval}},
        "knn_oov": {"n": 0, "reason": "…"},
        "majority": {**NUMBERS, "precision_at_k": None},
        "tfidf_svm_sentence": {**NUMBERS, "accuracy": 0.79, "precision_at_k": None},
        "sentence_knn": {"n": 0, "reason": "there are none"},
    }
    unknown = {"n": 0, "reason": "the guide spans 1.0 days"}
    protocols = {
        "unseen_title": {"title_only": known},
        "unseen_show": {"title_only": known},
        "next_period": {"title_only": unknown},
    }
    return {
        "protocols": protocols,
        "clusters": {"count": 0, "noise_share": 1.0, "ami": None, "run_to_run_ari": None},
    }


def told(interval=(0.7, 0.9), verdict=None, before=None, anomalies=(), clusters=()):
    verdict = verdict or Verdict(
        version="3", champion=False, reason="worse than the champion", quality=0.52, difference=-0.01
    )
    document = scores(interval)
    figures = headline(document, verdict, titles=900, programmes=1234)
    return report_markdown(
        GUIDE,
        FEEDS,
        document,
        verdict,
        figures=figures,
        before=before or {},
        anomalies=anomalies,
        clusters=clusters,
        places=["Map: `map.html`"],
    )


def test_it_has_feeds_scores_and_the_gates_word():
    text = told()
    assert text.startswith("## Not promoted: version 3\n\nWorse than the champion.\n\n- Map: `map.html`\n")
    assert (
        "| odd\\|name.xml | 1,300 | 1,234 | 60 | 6 |" in text
        and "holds 1,234 programmes, 5 channels." in text
    )
    assert (
        "| **GuideSpace k-NN** | 0.800 | 0.750 | 0.900 | 0.500 |" in text
        and "| majority class | 0.800 | – | 0.900 | 0.500 |" in text
    )
    assert "| TF-IDF linear SVM with the sentence vector | 0.790 | – | 0.900 | 0.500 |" in text
    assert "Not scored: k-NN of sentence vectors (there are none)." in text
    assert text.count("95 % interval of the k-NN's accuracy: 0.700 to 0.900.") == 2
    assert (
        "the guide spans 1.0 days." in text
        and "0 clusters, 1.000 of titles in none; AMI –, run-to-run ARI –." in text
    )
    assert "The data checks found nothing unusual." in text


def test_titles_of_a_single_show_have_no_interval():
    text = told(None, Verdict(version="1", champion=True, reason="there is no champion yet"))
    assert text.startswith("## Champion: version 1") and "interval" not in text


def test_last_nights_figures_stand_beside_tonights():
    text = told(before={"quality": 0.5, "accuracy": 0.81, "clusters": 3.0, "programmes": 1200.0, "ami": 0.4})
    assert "|  | tonight | last night | change |" in text
    for line in (
        "| quality, by which the gate decides | 0.520 | 0.500 | +0.020 |",
        "| quality less the champion's | -0.010 | – | – |",
        "| accuracy, titles never seen | 0.800 | 0.810 | -0.010 |",
        "| clusters | 0 | 3 | -3 |",
        "| programmes in the guide | 1,234 | 1,200 | +34 |",
        "| AMI of clusters and categories | – | 0.400 | – |",
    ):
        assert line in text
    assert "last night" not in told()


def test_anomalies_and_clusters_are_named():
    anomalies = [f"uk.xml 2025-03-{day:02}: channel a|b fell silent" for day in range(1, 31)]
    text = told(
        anomalies=anomalies,
        clusters=[{"name": "News · Politics", "size": 7}, {"name": "Football | Cup", "size": 1200}],
    )
    assert (
        "### Anomalies (30)" in text
        and "- uk.xml 2025-03-20: channel a\\|b fell silent" in text
        and "2025-03-21" not in text
    )
    assert "and 10 more, in the table guide-checks" in text
    assert "| Football \\| Cup | 1,200 |\n| News · Politics | 7 |" in text


def test_the_headline_is_a_dozen_figures():
    assert 12 <= len(HEADLINE) <= 14
    figures = headline(
        scores(None), Verdict(version="1", champion=True, reason="", quality=0.5), titles=9, programmes=12
    )
    assert (
        list(figures) == [name for name in HEADLINE if name in figures]
        and figures["quality"] == 0.5
        and figures["accuracy_unseen_show"] == 0.8
    )
    assert not {"quality_difference", "ami", "accuracy_next_period"} & set(figures)  # nothing supports them


@pytest.mark.parametrize(
    ("verdict", "message"),
    [
        (
            Verdict(version="2", champion=True, reason="better", quality=0.52, difference=0.01),
            "version 2 is champion: quality 0.520, +0.010",
        ),
        (
            Verdict(version="2", champion=False, reason="worse", quality=0.5, difference=-0.02),
            "version 2 is not promoted: quality 0.500, -0.020",
        ),
        (
            Verdict(version="1", champion=True, reason="there is no champion yet", quality=0.5),
            "version 1 is champion: quality 0.500",
        ),
        (
            Verdict(version="1", champion=True, reason="there is no champion yet"),
            "version 1 is champion: there is no champion yet",
        ),
        (
            Verdict(version="2", champion=False, reason="not comparable", quality=0.5),
            "version 2 is not promoted: not comparable",
        ),
    ],
)
def test_the_verdict_is_one_line(verdict, message):
    assert verdict.message == message
