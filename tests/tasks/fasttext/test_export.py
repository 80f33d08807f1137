"""An exported model can be loaded by the fasttext package and by gensim."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from tasks.encoder.fasttext_export import export_bin, word_vectors
from tasks.encoder.title_encoder import TitleEncoder
from tasks.fasttext import FastText
from tasks.fasttext.layout import Header
from tasks.fasttext.writer import write_bin
from tests.worlds import UNSEEN

NEVER = [word for words in UNSEEN.values() for word in words]


@pytest.fixture(scope="module")
def exported(learnt: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, TitleEncoder]:
    home, *_, made = learnt
    folder, file = home / made.path, tmp_path_factory.mktemp("export") / "model.bin"
    encoder = TitleEncoder.open(folder)
    encoder = replace(encoder, unseen_words=_refit(encoder, 3000))
    written = export_bin(
        encoder, pq.read_table(folder / "tokens.parquet")["document_frequency"].to_numpy(), file
    )
    assert written == len(word_vectors(encoder)[0]) > 30
    return file, encoder


def test_known_words_keep_their_vectors(exported: tuple[Path, TitleEncoder], fasttext: Any):
    file, encoder = exported
    words, vectors = word_vectors(encoder)
    np.testing.assert_allclose(FastText.open(file).vectors(words), vectors, atol=1e-6)
    theirs = fasttext.load_model(str(file))
    np.testing.assert_allclose(np.stack([theirs.get_word_vector(word) for word in words]), vectors, atol=1e-6)


def test_fasttext_and_gensim_read_the_same(exported: tuple[Path, TitleEncoder], fasttext: Any):
    file, encoder = exported
    words = [*word_vectors(encoder)[0], *NEVER]
    ours, theirs = FastText.open(file), fasttext.load_model(str(file))
    np.testing.assert_array_equal(
        ours.vectors(words), np.stack([theirs.get_word_vector(word) for word in words])
    )
    facebook = (
        pytest.importorskip("gensim.models.fasttext", reason="gensim is not installed (extra dev)")
        .load_facebook_model(str(file))
        .wv
    )
    np.testing.assert_allclose(np.stack([facebook[word] for word in words]), ours.vectors(words), atol=1e-6)


def test_words_never_seen_point_where_the_encoder_has_them(learnt: Any, tmp_path: Path):
    """With the encoder's own buckets in use, direction is the same; length is right in the median."""
    home, *_, made = learnt
    encoder = TitleEncoder.open(home / made.path)
    small = replace(encoder, unseen_words=_refit(encoder, 5000))
    frequency = pq.read_table(home / made.path / "tokens.parquet")["document_frequency"].to_numpy()
    export_bin(small, frequency, tmp_path / "model.bin")
    expected, found = (
        small.unseen_words.vectors(NEVER)[0],
        FastText.open(tmp_path / "model.bin").vectors(NEVER),
    )
    cosines = (
        (expected * found).sum(axis=1) / np.linalg.norm(expected, axis=1) / np.linalg.norm(found, axis=1)
    )
    np.testing.assert_allclose(cosines, 1, atol=1e-5)
    assert 0.5 < np.median(np.linalg.norm(found, axis=1)) / small.unseen_words.norm < 1.5


def _refit(encoder: TitleEncoder, buckets: int) -> Any:
    from tasks.augment.distilled import Distilled

    words, rows = word_vectors(encoder)
    return Distilled(buckets=buckets).fit(words, rows, np.ones(len(words), dtype=np.int64))


def test_a_file_read_and_written_is_the_same(trained: dict[str, Path], tmp_path: Path):
    for kind in ("skipgram", "supervised_ngrams"):
        model = FastText.open(trained[kind])
        entries = [
            (model.dictionary.word(number), int(count))
            for number, count in enumerate(model.dictionary.counts)
        ]
        words = model.dictionary.word_count
        blocks = (
            [model.matrix.take(np.arange(len(model.matrix.codes)))],
            [model.output.take(np.arange(len(model.output.codes)))],
        )
        write_bin(
            tmp_path / "again.bin", model.header, entries[:words], blocks[0], blocks[1], entries[words:]
        )
        original = bytearray(trained[kind].read_bytes())
        original[76:84] = sum(count for _, count in entries).to_bytes(
            8, "little"
        )  # tokens also count the words left out
        assert (tmp_path / "again.bin").read_bytes() == bytes(original)


def test_words_and_rows_that_the_format_cannot_represent_are_refused(tmp_path: Path):
    header = Header(dim=2, bucket=0, minn=0, maxn=0)
    rows = np.zeros((1, 2), dtype=np.float32)
    for words, blocks, reason in (
        ([(b"", 1)], [rows], "at least one byte"),
        ([(b"a\0", 1)], [rows], "no zero byte"),
        ([(b"a", 1)], [rows, rows], "got 2 rows"),
        ([(b"a", 1)], [rows[:, :1]], "rows of 2"),
    ):
        with pytest.raises(ValueError, match=reason):
            write_bin(tmp_path / "bad.bin", header, words, blocks, [rows])
    assert not list(tmp_path.iterdir())
