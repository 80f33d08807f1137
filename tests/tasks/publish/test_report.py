"""The report of a night, also of one with hardly anything held out."""

from storage.artifacts import Guide
from storage.readings import Told
from tasks.publish.report import report_markdown
from tasks.publish.verdict import Verdict

GUIDE = Guide(path="artifacts/guide/x", digest="d", counts={"programmes": 1234, "channels": 5})
FEEDS = [{"source": "odd|name.xml", "seen": 1300, "stored": 1234, "duplicates": 60, "rejected": 6}]
NUMBERS = {"accuracy": 0.8, "precision_at_10": 0.75, "mrr": 0.9, "macro_f1": 0.5}


def scores(interval):
    known = {"n": 9, "knn": {**NUMBERS, "ci95": {"accuracy": interval}}, "knn_oov": {"n": 0, "reason": "…"}, "majority": {**NUMBERS, "precision_at_10": None}}
    unknown = {"n": 0, "reason": "the guide spans 1.0 days"}
    protocols = {"unseen_title": {"title_only": known}, "unseen_show": {"title_only": known}, "next_period": {"title_only": unknown}}
    return {"protocols": protocols, "clusters": {"count": 0, "noise_share": 1.0, "ami": None, "run_to_run_ari": None}}


def test_it_has_feeds_scores_and_the_gates_word():
    text = report_markdown(GUIDE, FEEDS, scores([0.7, 0.9]), Verdict(version="3", champion=False, reason="worse than the champion"))
    assert text.startswith("## Not promoted: version 3\n\nWorse than the champion.\n")
    assert "| odd\\|name.xml | 1,300 | 1,234 | 60 | 6 |" in text and "holds 1,234 programmes, 5 channels." in text
    assert "| **GuideSpace k-NN** | 0.800 | 0.750 | 0.900 | 0.500 |" in text and "| majority class | 0.800 | – | 0.900 | 0.500 |" in text
    assert text.count("95 % interval of the k-NN's accuracy: 0.700 to 0.900.") == 2
    assert "the guide spans 1.0 days." in text and "0 clusters, 1.000 of titles in none; AMI –, run-to-run ARI –." in text


def test_titles_of_a_single_show_have_no_interval():
    text = report_markdown(GUIDE, FEEDS, scores(None), Verdict(version="1", champion=True, reason="there is no champion yet"))
    assert text.startswith("## Champion: version 1") and "interval" not in text


def test_it_names_feeds_that_failed_or_are_odd():
    readings = [Told(source="/g/uk.xml", programmes=0, anomalies=("0 programmes, 9 in its reading of 2025-03-01",)), Told(source="/g/a|b", failed="/g/a|b: no such file")]
    verdict = Verdict(version="1", champion=True, reason="there is no champion yet")
    text = report_markdown(GUIDE, FEEDS, scores(None), verdict, [*readings, Told(source="/g/good.xml", programmes=5)])
    odd = text.split("### Feeds that failed or are odd")[1].split("###")[0]
    assert "- **/g/uk.xml**: 0 programmes, 9 in its reading of 2025-03-01" in odd and "- **/g/a\\|b**: not read: /g/a|b: no such file" in odd and "good" not in odd
    assert "Feeds that failed" not in report_markdown(GUIDE, FEEDS, scores(None), verdict)
