"""The linear part of the predictor: margins, size, and models without it."""

from pathlib import Path

import numpy as np
import pytest

from storage.arrays import Ragged
from storage.formats.corpus import open_corpus
from tasks.predictor import fitting
from tasks.predictor.features import distinct_tokens, inverse_frequencies, weigh_tokens
from tasks.predictor.linear_part import LinearPart
from tasks.predictor.prediction import corpus_support, support_of
from tasks.scoring.protocols import CorpusTitles
from tasks.text.words import CONTEXT, NGRAM, WORD

KINDS = np.array([WORD, WORD, NGRAM, CONTEXT], dtype=np.int8)


def test_each_group_of_kinds_has_unit_norm_and_repeated_tokens_count_once() -> None:
    tokens = Ragged.from_rows([[0, 1, 2, 3, 3, 0], [1], []])
    idf = inverse_frequencies(distinct_tokens(tokens, 4), 4)
    np.testing.assert_allclose(idf, 1 + np.log([4 / 2, 4 / 3, 4 / 2, 4 / 2]), rtol=1e-6)
    ids, values = weigh_tokens(tokens, KINDS, idf)
    assert [row.tolist() for row in (ids[0], ids[1], ids[2])] == [[0, 1, 2, 3], [1], []]
    words = np.hypot(idf[0], idf[1])
    np.testing.assert_allclose(values, [idf[0] / words, idf[1] / words, 1, 1, 1], rtol=1e-6)


def test_tokens_that_are_no_features_are_ignored() -> None:
    ids, values = weigh_tokens(Ragged.from_rows([[0, 1, 7]]), KINDS, np.array([1, 0, 1, 1], np.float32))
    assert ids.values.tolist() == [0] and values.tolist() == [1]


def test_saved_margins_are_those_of_the_svms_and_predict_held_out_titles(
    toy_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, trained = open_corpus(toy_corpus), []
    fit_svms = fitting.fit_svms
    monkeypatch.setattr(
        fitting, "fit_svms", lambda *args, **named: _keep(trained, args[0], fit_svms(*args, **named))
    )
    part, _ = fitting.fit_linear_part(corpus)
    part.save(tmp_path)
    opened = LinearPart.open(tmp_path)
    assert opened is not None and opened.label_names == corpus.label_names
    for form, (inputs, svms) in zip(("title_only", "title_context"), trained, strict=True):
        expected = support_of(svms.decision_function(inputs))
        np.testing.assert_allclose(corpus_support(opened, corpus, corpus.training, form), expected, atol=0.02)
    titles = CorpusTitles.from_corpus(corpus)
    queries = titles.labelled("unseen_title")
    top = corpus_support(opened, corpus, queries, "title_context").argmax(axis=1)
    truth = titles.labels.take(queries).multi_hot(titles.label_count)
    assert truth[np.arange(len(top)), top].mean() > 0.9


def _keep(trained: list, inputs: object, result: tuple) -> tuple:
    trained.append((inputs, result[0]))
    return result


def test_the_number_of_weights_is_bounded(toy_corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "MAX_WEIGHTS", 50)
    monkeypatch.setattr(fitting, "MAX_TOKENS", 200)
    part, _ = fitting.fit_linear_part(open_corpus(toy_corpus))
    for model in part.by_form.values():
        assert 0 < len(model.weights) <= 50 and len(model.idf) == 200


@pytest.mark.slow
def test_samples_that_exceed_the_memory_are_read_from_disk(
    toy_corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = open_corpus(toy_corpus)
    in_memory = corpus_support(fitting.fit_linear_part(corpus)[0], corpus, corpus.training, "title_context")
    monkeypatch.setattr(fitting, "MEMORY_BYTES", 1000)
    part, solver = fitting.fit_linear_part(corpus)
    assert "disk" in solver
    from_disk = corpus_support(part, corpus, corpus.training, "title_context")
    assert (from_disk.argmax(axis=1) == in_memory.argmax(axis=1)).mean() > 0.95


def test_a_folder_of_an_older_version_has_no_linear_part(tmp_path: Path) -> None:
    assert LinearPart.open(tmp_path) is None
