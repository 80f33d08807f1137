"""Doc2Vec of gensim (distributed bag of words), which does not use categories."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.rivals.contest import DIM, Contest, Trained, timed


@dataclass(frozen=True)
class Doc2Vec:
    """Rival that trains gensim's Doc2Vec on the training titles and infers the vectors of all titles."""

    name: str = "gensim Doc2Vec"
    epochs: Sequence[int] = (5, 20, 40)

    def train(self, contest: Contest, epochs: int, seed: int, threads: int) -> Trained:
        """Trains with ``threads`` workers; the vocabulary is made before the measurement, as ours is."""
        from gensim.models.doc2vec import Doc2Vec as Model
        from gensim.models.doc2vec import TaggedDocument

        texts = [text.split() for text in contest.token_texts()]
        documents = [TaggedDocument(texts[row], [number]) for number, row in enumerate(contest.training)]
        model = Model(vector_size=DIM, dm=0, min_count=1, workers=threads, seed=seed, epochs=epochs)
        model.build_vocab(documents)
        spent = timed(lambda: model.train(documents, total_examples=len(documents), epochs=epochs))
        return Trained(spent, lambda: np.stack([model.infer_vector(text, epochs=20) for text in texts]))
