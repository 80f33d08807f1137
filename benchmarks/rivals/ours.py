"""Training of GuideSpace, as the nightly run calls it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks.rivals.contest import Contest, Trained, timed
from tasks.encoder.bags import Bagger
from tasks.train.loop import Training
from tasks.train.settings import TrainSettings


@dataclass(frozen=True)
class Ours:
    """Our training with the settings of the preset and the number of dimensions of the rivals."""

    settings: TrainSettings
    name: str = "GuideSpace"
    epochs: Sequence[int] = (1, 2, 3, 4, 6)

    def train(self, contest: Contest, epochs: int, seed: int, threads: int) -> Trained:
        """Trains by the same function as a nightly run.

        Opening the corpus is not measured, as for the rivals. The thread that makes batches is an additional
        thread, and its time is measured.
        """
        training = Training(contest.folder, replace(self.settings, epochs=epochs, seed=seed, threads=threads))
        spent, corpus = timed(lambda: list(training.run())), contest.corpus
        dense = self.settings.encoder.sentence_features(corpus.sentences, corpus.descriptions)
        return Trained(
            spent, lambda: training.trainer.vectors(corpus.tokens, Bagger(corpus.kinds), dense).numpy()
        )
