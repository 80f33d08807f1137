"""Held-out channels: a query has no channel tokens, and titles on its channels do not vote."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from storage.formats.model import CHANNEL_VOTES, read_votes
from tasks.enrich.model import CategoryModel
from tasks.enrich.vocabulary import GuideVocabulary
from tasks.scoring.confidence import MIN_HELD_OUT


def test_no_voter_shares_a_channel_with_the_held_out_title(model: Path) -> None:
    votes, titles = read_votes(model, CHANNEL_VOTES), pq.read_table(model / "titles.parquet")
    assert votes is not None and len(votes.titles) > MIN_HELD_OUT
    channels = [frozenset(row) for row in titles["channels"].to_pylist()]
    for title, neighbours in zip(votes.titles.tolist(), votes.neighbours, strict=True):
        others = [channels[row] for row in neighbours[neighbours >= 0].tolist()]
        assert all(channels[title].isdisjoint(other) for other in others)


def test_titles_on_channels_without_labelled_titles_have_their_calibration(model: Path) -> None:
    opened = CategoryModel(model)
    predictor = opened.name_predictor(GuideVocabulary({}), 0)
    assert predictor.held_out_channels is not predictor.held_out_shows
    context = pq.read_table(model / "titles.parquet", columns=["context"])["context"].to_pylist()
    assert not opened._is_on_unlabelled_channels(context[int(opened.voters[0])])
    assert opened._is_on_unlabelled_channels(["channel:new.example", "hour:20"])
    assert not opened._is_on_unlabelled_channels(["hour:20"])
    _, queries = opened.embed_texts([opened.titles[0], "Another Programme"])
    neighbours = opened.neighbours(queries)
    languages = np.array(["", ""])
    on_unlabelled = neighbours._replace(on_unlabelled_channels=np.ones(2, dtype=bool))
    scores = predictor.predict_all(neighbours, languages)[1]
    for held_out, calibrated in (
        (predictor.held_out_shows, neighbours),
        (predictor.held_out_channels, on_unlabelled),
    ):
        assert held_out.calibrations is not None
        confidence = held_out.calibrations.confidence(scores, languages)
        np.testing.assert_allclose(predictor.predict_all(calibrated, languages)[2], confidence)
