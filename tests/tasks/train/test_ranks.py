"""Two gloo ranks, started by torchrun: the same quality as one process, resumed after a kill too."""

import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from storage.stages import ROOT
from tasks.preprocess.corpus import open_corpus
from tasks.preprocess.loader import BatchLoader
from tasks.train.devices import choose_device
from tasks.train.held_out import HeldOut
from tasks.train.loop import Training
from tasks.train.objectives import Label
from tasks.train.ranks import Ranks
from tasks.train.step import Learner
from tasks.train.tables import MappedTable
from tests.worlds import TRAINING

SHARE = 0.2  # of the families, set aside for the score


def torchrun(*arguments: str, timeout: float = 240) -> subprocess.CompletedProcess[str]:
    """``torchrun --nproc-per-node 2 …`` on a free port of this machine."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=timeout, check=False)


def score_of(corpus_folder: Path, tensors: dict[str, torch.Tensor]) -> float:
    """Score of titles set aside, by the rows of a checkpoint."""
    corpus = open_corpus(corpus_folder)
    learner = Learner(corpus_folder, corpus, TRAINING, choose_device("cpu"))
    learner.restore(tensors.__getitem__)
    score = HeldOut(corpus_folder, corpus, SHARE).read(learner).score
    assert score is not None
    return score


def test_ranks_share_every_batch_between_them(toy_corpus: Path):
    whole, *parts = (BatchLoader(toy_corpus, TRAINING.objective, dropout=0.0, seed=1, workers=0, share=share) for share in ((0, 1), (0, 2), (1, 2)))
    (count, batches), *shares = (loader.epoch(0) for loader in (whole, *parts))
    assert {number for number, _ in shares} == {count}
    for batch, *halves in zip(batches, *(loaded for _, loaded in shares), strict=True):
        sizes = [len(half.bags.offsets) - 1 for half in halves]
        assert sum(sizes) == len(batch.bags.offsets) - 1 and max(sizes) - min(sizes) <= 1
        assert sum(len(half.bags.tokens) for half in halves) == len(batch.bags.tokens)
        assert set(torch.cat([half.bags.ids for half in halves]).tolist()) == set(batch.bags.ids.tolist())


def test_a_rank_without_a_title_in_the_last_batch_learns_nothing_from_it(toy_corpus: Path):
    """One title and two ranks: the second one's loss was 0 / 0, and ended the run as diverged."""
    corpus = open_corpus(toy_corpus)
    objective = Label(batch=len(corpus.training) - 1)
    learner = Learner(toy_corpus, corpus, replace(TRAINING, objective=objective), choose_device("cpu"))
    _, batches = BatchLoader(toy_corpus, objective, dropout=0.0, seed=1, workers=0, share=(1, 2)).epoch(0)
    *_, last = batches
    assert len(last.bags.offsets) == 1  # no title
    before = {name: torch.cat(list(part.pieces())).clone() for name, part in learner.parts().items()}
    assert learner.step(last, 1.0).item() == 0
    assert all(torch.equal(torch.cat(list(part.pieces())), before[name]) for name, part in learner.parts().items())


def test_a_table_that_is_not_resident_is_refused(toy_corpus: Path):
    with pytest.raises(ValueError, match="'mapped' with 2 ranks"):
        Training(toy_corpus, replace(TRAINING, table=MappedTable()), Ranks(0, 2))


@pytest.mark.slow
def test_two_ranks_learn_what_one_process_learns_and_go_on_where_they_stopped(toy_corpus: Path, tmp_path: Path):
    settings = replace(TRAINING, patience=0, threads=1)
    file = tmp_path / "settings.json"
    file.write_text(json.dumps(asdict(settings)))
    done = torchrun("-m", "tasks.train", str(toy_corpus), str(tmp_path / "two"), str(file))
    assert done.returncode == 0, done.stderr
    told = [line.split(":")[0] for line in done.stdout.splitlines()]
    assert told == [f"epoch {epoch} of {settings.epochs}" for epoch in range(1, settings.epochs + 1)]  # the first rank alone speaks

    one = Training(toy_corpus, settings)
    list(one.run())
    alone = {name: torch.cat(list(part.pieces())) for name, part in one.learner.parts().items()}
    together = load_file(tmp_path / "two" / "checkpoint.safetensors")
    assert together.keys() == alone.keys() and not torch.equal(together["rows"], alone["rows"])
    untrained = Learner(toy_corpus, open_corpus(toy_corpus), settings, choose_device("cpu"))
    untrained.touched[:] = True
    start = score_of(toy_corpus, {name: torch.cat(list(part.pieces())) for name, part in untrained.parts().items()})
    scores = score_of(toy_corpus, together), score_of(toy_corpus, alone)
    assert min(scores) > start + 0.2 and abs(scores[0] - scores[1]) < 0.05, (start, scores)

    file.write_text(json.dumps({**asdict(settings), "epochs": settings.epochs + 1}))
    again = torchrun("-m", "tasks.train", str(toy_corpus), str(tmp_path / "two"), str(file))
    assert again.returncode == 0, again.stderr
    assert [line.split(":")[0] for line in again.stdout.splitlines()] == [f"epoch {settings.epochs + 1} of {settings.epochs + 1}"]


BITS = """
import sys, torch, torch.distributed as dist
from dataclasses import replace
from pathlib import Path
from tasks.train.loop import Training
from tasks.train.ranks import join_ranks
from tests.worlds import TRAINING
with join_ranks() as ranks:
    training = Training(Path(sys.argv[1]), replace(TRAINING, epochs=2), ranks)
    list(training.run())
    rows = training.table.rows
    received = [torch.empty_like(rows) for _ in range(ranks.size)]
    dist.all_gather(received, rows)
    assert torch.equal(*received), "ranks hold different rows"
    ids = torch.tensor([0, 5]) if ranks.rank == 0 else torch.tensor([5, 2, 9])
    union, mean = ranks.mean_rows(ids, torch.arange(1.0, 1 + 2 * len(ids)).reshape(-1, 2) * (1 + ranks.rank))
    assert union.tolist() == [0, 2, 5, 9], union
    assert mean.tolist() == [[0.5, 1.0], [3.0, 4.0], [1.5 + 1.0, 2.0 + 2.0], [5.0, 6.0]], mean
"""


@pytest.mark.slow
def test_all_ranks_hold_the_same_bits_and_the_mean_is_over_ranks(toy_corpus: Path, tmp_path: Path):
    script = tmp_path / "bits.py"
    script.write_text(BITS)
    done = torchrun(str(script), str(toy_corpus))
    assert done.returncode == 0, done.stderr[-3000:]


RESUMED = """
import sys
from dataclasses import replace
from pathlib import Path
from tasks.train.checkpoint import KeptByFirst
from tasks.train.loop import Training
from tasks.train.ranks import join_ranks
from tests.worlds import TRAINING

settings = replace(TRAINING, epochs=2, save_seconds=0.0, objective=replace(TRAINING.objective, packs=16))
with join_ranks() as ranks:
    whole = Training(Path(sys.argv[1]), settings, ranks)
    list(whole.run())
    stopped, kept = Training(Path(sys.argv[1]), settings, ranks), KeptByFirst(Path(sys.argv[2]), ranks)
    step = stopped.learner.step

    def counted(*arguments):
        if stopped.learner.steps == 3:
            raise KeyboardInterrupt
        return step(*arguments)

    stopped.learner.step = counted
    try:
        list(stopped.run(kept))
    except KeyboardInterrupt:
        ranks.wait()
    again = Training(Path(sys.argv[1]), settings, ranks)
    again.resume(kept)
    assert again.position.batch == 3, again.position
    list(again.run(kept))
    assert again.history == whole.history, (again.history, whole.history)
    assert again.table.rows.equal(whole.table.rows)
"""


@pytest.mark.slow
def test_ranks_that_were_stopped_within_an_epoch_end_with_the_same_history(toy_corpus: Path, tmp_path: Path):
    """The loss in the checkpoint was the first rank's own share, which the resumed run took for the mean of all."""
    script = tmp_path / "resumed.py"
    script.write_text(RESUMED)
    done = torchrun(str(script), str(toy_corpus), str(tmp_path / "kept"))
    assert done.returncode == 0, done.stderr[-3000:]
