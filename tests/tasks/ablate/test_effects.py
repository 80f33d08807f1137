"""Effects of blocks that help, hurt or change nothing."""

import numpy as np
import pytest

from storage.formats.answers import read_answers, write_answers
from tasks.ablate.blocks import BLOCKS, AblationBlock, UnknownBlock, choose_blocks
from tasks.ablate.effects import AGREEMENT, OOV, OVERALL, SHOWS, Folds, measure_effect, sort_effects
from tasks.ablate.plot import plot_effects
from tasks.ablate.report import describe_effect, format_figure, write_report
from tasks.scoring.folds import Figure, ScoresByCell, TitleScores

N_GRAMS, HOUR = (next(block for block in BLOCKS if block.name == name) for name in ("n-grams", "hour"))
CLUSTERER = next(block for block in BLOCKS if block.name == "clusterer")
FAMILIES = np.arange(200) // 2 / 100.0
NEW_WORD = np.arange(200) < 50


def answers(right: float, seed: int = 0) -> ScoresByCell:
    rng = np.random.default_rng(seed)
    correct = (rng.permutation(200) < 200 * right).astype(float)
    cells = [("title_only", "unseen_show"), ("title_context", "unseen_show"), ("title_only", "unseen_title")]
    return dict.fromkeys(cells, TitleScores(correct, correct, FAMILIES, NEW_WORD))


def folds(*right: float) -> Folds:
    return [[answers(share, seed) for seed in range(2)] for share in right]


def test_a_block_that_helps_is_worth_the_difference_of_the_means():
    effect = measure_effect(N_GRAMS, folds(0.8, 0.8), folds(0.5, 0.5))
    assert effect.overall.value == pytest.approx(0.3) and effect.overall.n == 2 * 3 * 200
    assert effect.figures[SHOWS].n == 2 * 2 * 200 and effect.pays is True
    assert effect.figures[OOV].n == 2 * 3 * 50
    assert (effect.quality_with, effect.quality_without) == (pytest.approx(0.8), pytest.approx(0.5))
    said = "Character n-grams are worth .300 ± "
    assert describe_effect(effect).startswith(said) and "unseen franchises" in describe_effect(effect)


def test_one_that_hurts_costs_and_one_that_changes_nothing_has_no_interval():
    worse = measure_effect(HOUR, folds(0.5), folds(0.6))
    assert worse.pays is False and describe_effect(worse).endswith(": costs.")
    same = measure_effect(HOUR, folds(0.5), folds(0.5))
    assert same.pays is None and format_figure(same.overall) == ".000 ± .000"
    assert sort_effects([worse, same]) == [same, worse]


def test_titles_with_unseen_words_have_a_separate_figure():
    base, fewer = (np.ones(200), np.where(NEW_WORD, 0.5, 1.0))
    cells = [
        [[{("title_only", "unseen_show"): TitleScores(own, None, FAMILIES, NEW_WORD)}]]
        for own in (base, fewer)
    ]
    effect = measure_effect(N_GRAMS, *cells)
    assert effect.figures[OOV].value == 0.5 and effect.overall.value == pytest.approx(0.125)
    assert "| n-grams | `train.encoder.ngram=0` | .125 ± .0" in (text := write_report([effect]))
    assert "| titles with an unseen word |" in text and " | .500 ± .000 |" in text


def test_the_difference_is_paired_and_families_are_resampled():
    base = [
        [
            {
                ("title_only", "unseen_show"): TitleScores(
                    np.r_[np.ones(100), np.zeros(100)], None, FAMILIES, NEW_WORD
                )
            }
        ]
    ]
    shifted = np.r_[np.ones(90), np.zeros(110)]  # five families lose both of their titles
    other = [[{("title_only", "unseen_show"): TitleScores(shifted, None, FAMILIES, NEW_WORD)}]]
    figure = measure_effect(HOUR, base, other).overall
    # Of 100 families 5 have the difference 1: the standard error of their mean.
    assert figure.value == pytest.approx(0.05)
    assert figure.error == pytest.approx((0.05 * 0.95 / 100) ** 0.5, rel=0.1)


def test_a_block_that_moves_titles_between_splits_is_refused():
    other = [
        [{key: TitleScores(own.correct, None, own.family + 1, own.oov) for key, own in answers(0.5).items()}]
    ]
    with pytest.raises(ValueError, match="different titles of unseen_title are held out"):
        measure_effect(HOUR, folds(0.5), other)


def test_the_report_sorts_effects_and_separates_clusters():
    clusters = [
        [{AGREEMENT: TitleScores(np.full(200, share), None, FAMILIES, NEW_WORD)}] for share in (0.6, 0.4)
    ]
    effects = sort_effects(
        [
            measure_effect(CLUSTERER, clusters[:1], clusters[1:]),
            measure_effect(HOUR, folds(0.5), folds(0.5)),
            measure_effect(N_GRAMS, folds(0.8), folds(0.5)),
        ]
    )
    text = write_report(effects, ["rule"])
    rows = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ")]
    assert rows == ["block", "---", "n-grams", "hour", "block", "---", "clusterer"]
    assert "Chinese Whispers, not DBSCAN, is worth .200 ± .000 of the clusters' B-cubed F." in text
    assert (
        "Without a positive effect: hour (`train.encoder.hour=0`)." in text
        and "change the preset: rule." in text
    )
    assert "next period" not in text  # nothing was held out there
    figure = plot_effects(effects)
    shown = next(trace for trace in figure.data if trace.visible)
    assert list(shown.y) == ["n-grams", "hour", "clusterer"] and shown.x[0] == pytest.approx(0.3)
    assert len(figure.data) == len(figure.layout.updatemenus[0].buttons) == 4


def test_numbers_as_the_page_shows_them():
    assert format_figure(Figure(0.0314, 0.003, 9)) == ".031 ± .006"
    assert (
        format_figure(Figure(-0.0314, 0.0, 9)) == "−.031 ± .000"
        and format_figure(Figure(-0.0001, 0.6, 9)) == ".000 ± 1.176"
    )


def test_blocks_are_chosen_by_name_pattern_or_change():
    assert choose_blocks([]) == list(BLOCKS)
    assert [block.name for block in choose_blocks(["context*", "hour", "hour"])] == [
        "context", "context dropout", "hour",
    ]  # fmt: skip
    (own,) = choose_blocks(["train.optimizer=adam train.epochs=3"])
    assert own.changes == ("train.optimizer=adam", "train.epochs=3") and not own.is_of_clusters
    with pytest.raises(
        UnknownBlock, match=r"no block is called 'ngrams'; expected one of word, .*NAME=VALUE"
    ):
        choose_blocks(["ngrams"])


def test_names_of_blocks_are_unique():
    assert len({block.name for block in BLOCKS}) == len(BLOCKS)
    assert all(isinstance(block, AblationBlock) and block.changes for block in BLOCKS)


def test_answers_round_trip(tmp_path):
    given = {
        **answers(0.5),
        AGREEMENT: TitleScores(np.linspace(0, 1, 5), None, np.arange(5.0), np.arange(5) > 2),
    }
    write_answers(tmp_path, given)
    found = read_answers(tmp_path)
    assert found.keys() == given.keys() and OVERALL not in found
    for key, own in given.items():
        for column, expected in zip(found[key], own, strict=True):
            assert (column is None) == (expected is None)
            assert column is None or np.array_equal(column, expected)
