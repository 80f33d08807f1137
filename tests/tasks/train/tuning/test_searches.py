"""Random search on the toy world: the budget, the same proposals after a resume, and the settings."""

from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from tasks.pool import open_pool
from tasks.train.tuning.esgd import ESGD
from tasks.train.tuning.random_search import RandomSearch
from tasks.train.tuning.settings import TuningSettings
from tasks.train.tuning.space import Space, TuningTrial, read_rounds
from tests.worlds import TRAINING

SETTINGS = replace(TRAINING, epochs=1, workers=0)
POOL = TuningSettings(optimizers=("sgd", "adam"), rates=(0.1, 1.0, 10.0), budget=9, share=0.2)


def trials(search: RandomSearch, space: Space, folder: Path, rounds: int = 99) -> list[TuningTrial]:
    with open_pool("processes", 0) as submit:
        for progress in search.search(space, folder, submit):
            if progress.step == rounds:
                break
    return [trial for found in read_rounds(folder) for trial in found.trials]


def test_random_search_spends_its_budget_and_resumes(toy_corpus: Path, tmp_path: Path) -> None:
    space = POOL.space(toy_corpus, SETTINGS, 8)
    whole = trials(RandomSearch(), space, tmp_path / "whole")
    assert len(whole) == 9 and {trial.name for trial in whole} == {"sgd", "adam"}
    assert all(0.1 <= trial.factor <= 10 for trial in whole) and len({trial.factor for trial in whole}) == 9
    assert len(trials(RandomSearch(), space, tmp_path / "resumed", rounds=1)) == 8
    assert trials(RandomSearch(), space, tmp_path / "resumed") == whole
    assert read_rounds(tmp_path / "whole")[-1].winners[0][1] == max(trial.score for trial in whole)


def test_the_budget_is_that_of_the_comparison_by_default() -> None:
    space = replace(POOL, budget=0).space(Path(), SETTINGS, 8)
    assert space.trainings == 6 and space.rates == (0.1, 10.0) and space.candidates[0].settings.dim == 8
    assert ESGD(population=2, offspring=2, elite=1).generations(replace(space, trainings=10)) == 5


@pytest.mark.parametrize("name", ["sizes", "rates"])
def test_empty_sizes_and_rates_are_errors(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} is empty"):
        replace(POOL, **{name: ()})  # pyright: ignore[reportArgumentType]


def test_searches_are_a_family() -> None:
    values = {"searches": [{"name": "esgd", "population": 4}, {"strategy_random": "random"}]}
    settings = TypeAdapter(TuningSettings).validate_python(values)
    assert settings.searches == (ESGD(population=4), RandomSearch())
