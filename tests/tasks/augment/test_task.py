"""The stage augment: the TitleEncoder computes the vectors of the training."""

import dataclasses
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import load_file

from storage.arrays import Ragged
from storage.artifacts import Checkpoint, Corpus, Guide, Vocabulary
from storage.formats.corpus import open_corpus
from storage.home.workspace import Workspace
from tasks.augment.settings import AugmentSettings
from tasks.augment.task import augment
from tasks.encoder import Bag
from tasks.encoder.bags import Bagger
from tasks.encoder.title_encoder import TitleEncoder
from tasks.text.words import CONTEXT
from tasks.train.checkpoint import write_checkpoint
from tasks.train.loop import Training
from tasks.train.objectives import RareMemory
from tests.worlds import TRAINING

OPTIONS = [field.name for field in dataclasses.fields(Bag) if field.name != "name"]


@pytest.mark.parametrize("nearest_slot", [False, True])
def test_the_encoder_gives_the_vectors_that_training_saw(
    toy: tuple[Path, Guide, Vocabulary, Corpus], without_run, nearest_slot: bool
):
    """With all options of the encoder, also one added later, and with the nearest slot alone: an option that
    only training knows would publish other vectors."""
    options = [option for option in OPTIONS if (option == "nearest_slot") == nearest_slot]
    home, _, vocabulary, corpus = toy
    settings = replace(
        TRAINING,
        epochs=1,
        encoder=replace(Bag(), **dict.fromkeys(options, 1)),
        objective=RareMemory(slots=50),
    )
    training = Training(home / corpus.path, settings)
    list(training.run())
    with Workspace(home).publishing(Checkpoint, f"nearest-slot-{nearest_slot}") as draft:
        write_checkpoint(draft.folder / "checkpoint.safetensors", training.trainer, training.position)
    encoder = TitleEncoder.open(
        home
        / without_run(
            augment, str(home), vocabulary, corpus, draft.artifact, settings.encoder, AugmentSettings()
        ).path
    )
    opened = open_corpus(home / corpus.path)
    rows = opened.training[:50]
    raw = pq.read_table(home / corpus.path / "titles.parquet")["raw_title"].to_pylist()
    bare = Ragged.from_rows([tokens[opened.kinds[tokens] < CONTEXT] for tokens in opened.tokens.take(rows)])
    dense = settings.encoder.sentence_features(opened.sentences[rows], opened.descriptions[rows])
    seen = training.trainer.vectors(bare, Bagger(opened.kinds), dense).numpy()
    if nearest_slot:
        cosines = seen @ (keys := training.trainer.buffers["memory_keys"].numpy()).T
        seen = np.hstack([seen, keys[cosines.argmax(axis=1)]]) / np.sqrt(2)
    else:  # float16 on disk, by which the nearest slot may be another
        np.testing.assert_allclose(
            encoder.embed([raw[row] for row in rows]), seen, atol=1e-3
        )  # float16 on disk
    np.testing.assert_allclose(encoder.embed([raw[row] for row in rows], dense), seen, atol=1e-5)


def test_an_encoder_with_removed_options_opens(learnt: tuple, tmp_path: Path):
    """The champion of an older version serves until the first night of this one."""
    home, encoder = learnt[0], learnt[-1]
    old = tmp_path / "encoder"
    shutil.copytree(home / encoder.path, old)
    content = json.loads((old / "lexicon.json").read_text(encoding="utf-8"))
    content["encoder"] |= {"sif": 0.01, "directions": 1}
    (old / "lexicon.json").write_text(json.dumps(content), encoding="utf-8")
    np.testing.assert_array_equal(
        TitleEncoder.open(old).embed(["kitchen recipes"]),
        TitleEncoder.open(home / encoder.path).embed(["kitchen recipes"]),
    )


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="reads /proc, which is Linux'")
def test_rows_are_mapped_not_copied(
    toy: tuple[Path, Guide, Vocabulary, Corpus], without_run, monkeypatch: pytest.MonkeyPatch
):
    """A table larger than memory is published and opened."""
    home, _, vocabulary, corpus = toy
    training, mapped, save = Training(home / corpus.path, replace(TRAINING, epochs=1)), [], TitleEncoder.save

    def holds(file: Path, rows: np.ndarray) -> bool:
        """Returns whether the memory of the rows is in the memory map of the file."""
        lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
        spans = (line.split()[0].split("-") for line in lines if line.endswith(str(file)))
        return any(int(first, 16) <= rows.ctypes.data < int(last, 16) for first, last in spans)

    def seen(self: TitleEncoder, *given: Path) -> None:
        mapped.append(holds(checkpoint, self.rows))
        save(self, *given)

    with Workspace(home).publishing(Checkpoint, "mapped") as draft:
        write_checkpoint(draft.folder / "checkpoint.safetensors", training.trainer, training.position)
    checkpoint = (home / draft.artifact.path / "checkpoint.safetensors").resolve()
    monkeypatch.setattr(TitleEncoder, "save", seen)
    settings = training.settings.encoder, AugmentSettings()
    made = home / without_run(augment, str(home), vocabulary, corpus, draft.artifact, *settings).path
    opened = TitleEncoder.open(made)
    assert mapped == [True] and holds((made / "rows.safetensors").resolve(), opened.rows)
    assert np.array_equal(opened.rows, load_file(checkpoint)["rows"])
