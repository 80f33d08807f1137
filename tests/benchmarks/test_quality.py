"""The public benchmark: content of a set, means over folds, and the generated page."""

import io
import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from benchmarks.quality import quality
from benchmarks.quality.facts import write_facts
from tasks.scoring.folds import TitleScores, mean_scores

GUIDE = b"""<?xml version="1.0" encoding="UTF-8"?>
<tv source-info-name="x">
<channel id="one"><display-name>One &amp; Only</display-name><icon src="a.png"/></channel>
<programme start="20250301200000" stop="20250301210000" channel="one" extra="y">
<title lang="en">Tea &lt; Two</title><desc>Somebody's text.</desc><credits><actor>A</actor></credits>
<category>News</category><date>2025</date></programme>
<programme start="20250301200000" channel="one"><title>Tea &lt; Two</title></programme>
<programme start="20250301210000" channel="one"><title>Quiz</title></programme></tv>"""


def test_benchmark_sets_contain_no_descriptions():
    target = io.BytesIO()
    assert write_facts(io.BytesIO(GUIDE), target) == (2, 1)
    root = ElementTree.fromstring(target.getvalue())
    assert [element.tag for element in root] == ["channel", "programme", "programme"]
    assert [child.tag for child in root[1]] == ["title", "category", "date"]
    assert root[1].findtext("title") == "Tea < Two" and root[1][0].get("lang") == "en"
    assert (
        set(root[1].keys()) == {"start", "stop", "channel"}
        and root[0].findtext("display-name") == "One & Only"
    )
    again = io.BytesIO()
    assert write_facts(io.BytesIO(target.getvalue()), again) == (2, 0)
    assert again.getvalue() == target.getvalue()


def held(correct: list[int], family: list[int], precision: list[float] | None = None) -> TitleScores:
    near = None if precision is None else np.array(precision)
    return TitleScores(np.array(correct, float), near, np.array(family), np.zeros(len(family), dtype=bool))


def test_mean_scores_pool_folds_and_resample_families():
    figures = mean_scores([held([1, 1], [7, 7], [0.5, 0.7]), held([0, 0, 0], [9, 9, 9], [0.1, 0.1, 0.1])])
    assert figures["accuracy"].value == pytest.approx(0.4) and figures["accuracy"].n == 5
    assert figures["precision_at_10"].value == pytest.approx(0.3)
    # Two families: half of the resamples hold one of them alone, of accuracy 0 or 1.
    assert figures["accuracy"].error == pytest.approx(0.35, abs=0.02)
    apart = mean_scores([held([1, 1], [7, 7]), held([1, 0, 0, 0], [7, 9, 9, 9])])
    assert set(apart) == {"accuracy"}
    same = mean_scores([held([1, 0, 1, 0], [1, 2, 3, 4]), held([1, 0, 1, 0], [1, 2, 3, 4])])
    once = mean_scores([held([1, 0, 1, 0], [1, 2, 3, 4])])
    assert same["accuracy"].error == pytest.approx(once["accuracy"].error)  # two folds of the same titles


@pytest.fixture
def results() -> quality.Results:
    def system(accuracy: float) -> dict:
        figures = {"accuracy": [accuracy, 0.03, 200]}
        return {"commit": "abc", "title_only": {"unseen_title": figures}}

    return {
        "UK1": {"GuideSpace": system(0.5), "tfidf_svm": system(0.4)},
        "DK1": {"GuideSpace": system(0.7), "tfidf_svm": system(0.6)},
    }


def test_guides_weigh_equally(results: quality.Results):
    mean = quality.mean_over_guides(results, "GuideSpace", "title_only", "unseen_title", "accuracy")
    assert mean is not None and mean.value == pytest.approx(0.6) and mean.n == 2
    assert mean.error == pytest.approx(0.03 / np.sqrt(2))
    assert quality.mean_over_guides(results, "majority", "title_only", "unseen_title", "accuracy") is None
    (claim,) = quality.claims(results)
    assert claim.rival == "tfidf_svm" and claim.ratio == pytest.approx(1.2) and claim.met


def test_a_command_updates_the_page_and_keeps_earlier_results(
    results: quality.Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    page, stored = tmp_path / "benchmark.md", tmp_path / "quality.json"
    page.write_text(f"# Above\n\n{quality.BEGIN}\nold\n{quality.END}\n\nBelow.\n", encoding="utf-8")
    monkeypatch.setattr(quality, "PAGE", page)
    monkeypatch.setattr(quality, "RESULTS", stored)
    quality.write({"UK1": results["UK1"]})
    quality.write({"DK1": results["DK1"]})
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# Above") and text.endswith("Below.\n") and "old" not in text
    assert "| GuideSpace | 2 | 0.600 ± 0.042 | – |" in text
    assert "| UK1 | 200 | 0.500 | 0.400 |" in text and "Commits: abc (GuideSpace, tfidf_svm)." in text
    assert set(json.loads(stored.read_text(encoding="utf-8"))) == {"UK1", "DK1"}


def test_the_page_in_the_documentation_has_the_stored_results():
    text = quality.PAGE.read_text(encoding="utf-8")
    assert text.count(quality.BEGIN) == text.count(quality.END) == 1
    measured = text.partition(quality.BEGIN)[2].partition(quality.END)[0].strip()
    assert measured == quality.page(json.loads(quality.RESULTS.read_text(encoding="utf-8")))


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_every_fast_system_answers_a_real_guide(guidespace_data: Path):
    found = quality.measure_guide("DK1", quality.FAST)
    assert tuple(found) == quality.FAST
    for own in found.values():
        accuracy, error, titles = own["title_only"]["unseen_show"]["accuracy"]
        assert 0 < accuracy < 1 and 0 < error < 0.2 and titles > 300
