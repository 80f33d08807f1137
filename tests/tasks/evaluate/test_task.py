"""The stage evaluate on the toy world, with and without sentence vectors."""

import json
import shutil
from pathlib import Path

import pytest

from storage.artifacts import Clustering, Corpus, TitleEncoderFiles, Vectors
from tasks.baselines import SentenceKnn, TfidfSvm, TfidfSvmSentence
from tasks.evaluate.settings import EvaluateSettings
from tests import worlds

RIVALS = (SentenceKnn(), TfidfSvm(), TfidfSvmSentence())


@pytest.fixture(scope="module")
def clustered(
    learnt, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Corpus, TitleEncoderFiles, Vectors, Clustering]:
    from prefect.logging import disable_run_logger

    from tasks.embed.task import embed

    source, _, _, corpus, _, encoder = learnt
    home = tmp_path_factory.mktemp("clustered") / "home"
    shutil.copytree(source, home)
    with disable_run_logger():
        vectors = embed.fn(str(home), corpus, encoder)
        return home, corpus, encoder, vectors, worlds.publish_clusters(home, corpus, vectors)


@pytest.mark.parametrize("encoder", ["with", "without"])
def test_baselines_read_the_sentence_vectors_of_the_corpus(clustered, without_run, tmp_path, encoder):
    from tasks.evaluate.task import evaluate, score_baselines
    from tasks.predictor.task import fit_linear
    from tasks.publish.task import pack

    source, corpus, lexicon, vectors, clustering = clustered
    home = tmp_path / "home"
    shutil.copytree(source, home)
    for name in ("sentences", "descriptions") if encoder == "without" else ():
        (home / corpus.path / f"{name}.npy").unlink(missing_ok=True)
    settings = EvaluateSettings(baselines=RIVALS, resamples=100)
    baselines = without_run(score_baselines, str(home), corpus, settings)
    linear = without_run(fit_linear, str(home), corpus)
    model = without_run(pack, str(home), corpus, lexicon, vectors, linear)
    scores = without_run(evaluate, str(home), corpus, vectors, clustering, baselines, model, settings)
    protocols = json.loads((home / scores.path / "scores.json").read_text(encoding="utf-8"))["protocols"]
    for form in ("title_only", "title_context"):
        own = protocols["unseen_title"][form]
        assert own["tfidf_svm"]["accuracy"] > 0.8  # three categories, told by every word
        if encoder == "with":
            assert own["sentence_knn"]["precision_at_k"] > 0.5  # .33 by chance; nothing was trained
            assert own["tfidf_svm_sentence"]["ci95"]["accuracy"][1] > 0.8
        else:
            for rival in ("sentence_knn", "tfidf_svm_sentence"):
                assert own[rival]["n"] == 0 and "preprocess.sentences" in own[rival]["reason"]
