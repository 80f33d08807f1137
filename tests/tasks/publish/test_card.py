"""The model card."""

from dataclasses import replace
from datetime import datetime

from storage.artifacts import Corpus, Guide
from tasks.publish.nights.card import model_card

GUIDE = Guide(path="g", digest="ab" * 32, counts={"programmes": 9935, "channels": 42})
CORPUS = Corpus(
    path="c", digest="cd" * 32, counts={"titles": 1830, "labelled_training_titles": 977, "labels": 31}
)
SPAN = datetime(2026, 1, 11, 5), datetime(2026, 1, 19, 23)
KNN = {"accuracy": 0.5, "precision_at_k": 0.4, "mrr": 0.6, "ci95": {"accuracy": [0.41, 0.59]}}
SCORES = {
    "protocols": {
        "unseen_title": {"title_only": {"n": 110, "knn": KNN, "knn_oov": {"accuracy": 0.25}}},
        "unseen_show": {"title_only": {"n": 1, "knn": {**KNN, "ci95": {"accuracy": None}}}},
        "next_period": {"title_only": {"n": 0, "reason": "no title"}},
    }
}


def card(feeds, languages=("en", "en", "de", ""), guide=GUIDE):
    return model_card(
        guide, CORPUS, feeds=feeds, span=SPAN, languages=languages, scores=SCORES, oov_share=0.77
    )


def test_card_contains_data_scores_and_limits():
    text = card([{"source": "/data/uk.xml.gz", "content_digest": "ef" * 32, "stored": 5000}])
    assert text.startswith("## Model card\n")
    for fact in (
        "guide `abababababab`, 9,935 programmes of 42 channels from 2026-01-11 to 2026-01-19",
        "1,830 titles, 977 of them training titles with categories. Languages: en 50%, de 25%.",
        "- `/data/uk.xml.gz`: 5,000 programmes, content `efefefefefef`",
        "| Unseen titles | 110 | 0.500 | 0.410 to 0.590 | 0.400 | 0.600 |",
        "| Unseen franchises | 1 | 0.500 | – | 0.400 | 0.600 |",
        "| Next period | 0 | – | – | – | – |",
        "31 categories",
        "77% of the held-out titles have a word that no training title has",
        "accuracy is 0.250",
    ):
        assert fact in text, fact


def test_card_without_languages_and_with_one_programme():
    guide = replace(GUIDE, counts={"programmes": 1, "channels": 1})
    text = card([{"source": "a", "content_digest": "e" * 64, "stored": 1}], languages=("", ""), guide=guide)
    assert "1 programme of 1 channel from" in text and "- `a`: 1 programme, content" in text
    assert "with categories.\n" in text


def test_readings_of_one_feed_are_one_line():
    readings = [
        {"source": "/data/uk.xml.gz", "content_digest": digit * 64, "stored": 1000} for digit in "abc"
    ]
    line = "- `/data/uk.xml.gz`: 3,000 programmes, content `cccccccccccc`, last of 3 readings"
    assert card(readings).count("uk.xml.gz") == 1 and line in card(readings)


def test_many_feeds_fit_into_mlflows_description():
    feeds = [
        {"source": f"/data/{day:03}.xml.gz", "content_digest": f"{day:064}", "stored": day}
        for day in range(400)
    ]
    text = card(feeds)
    assert "/data/399.xml.gz" in text and "/data/000.xml.gz" not in text and "and 390 more" in text
    assert len(text) < 4000
