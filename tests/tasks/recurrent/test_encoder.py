"""The recurrent encoder against torch's own cells on one string at a time."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.arrays import Ragged
from tasks.recurrent.alphabet import Alphabet
from tasks.recurrent.encoder import CELL_CLASSES, CharacterEncoder, Recurrent, pack_strings

WORDS = ["kitchen", "goal", "küche", "a", "", "goalkeeper", "ab", "kitchens", "goal"]
DIRECTIONS = [False, True]


def make(cell: str = "gru", *, right_to_left: bool = False, **changes: object) -> CharacterEncoder:
    chosen = Recurrent(character_dim=5, hidden=7, cell=cell, right_to_left=right_to_left)
    return CharacterEncoder(dataclasses.replace(chosen, **changes), Alphabet.from_strings(WORDS * 2), seed=3)


@pytest.mark.parametrize("cell", CELL_CLASSES)
@pytest.mark.parametrize("right_to_left", DIRECTIONS)
def test_each_vector_is_torchs_last_output_of_that_string_alone(cell: str, right_to_left: bool):
    encoder = make(cell, right_to_left=right_to_left)
    vectors = encoder.vectors(WORDS)
    assert not vectors[WORDS.index("")].any()
    for word, vector in zip(WORDS, vectors, strict=True):
        if not word:
            continue
        read = encoder.alphabet.ids([word[::-1] if right_to_left else word]).values
        with torch.no_grad():
            states, _ = encoder.cell(encoder.rows[torch.from_numpy(read)])
        np.testing.assert_allclose(vector, states[-1].numpy(), atol=1e-6)  # the true last state


@pytest.mark.parametrize("cell", CELL_CLASSES)
def test_right_to_left_equals_reversed_strings(cell: str):
    backwards = make(cell, right_to_left=True).vectors(WORDS)
    reversed_ = make(cell).vectors([word[::-1] for word in WORDS])
    np.testing.assert_array_equal(backwards, reversed_)


@settings(max_examples=30)
@given(st.lists(st.text("abgk☃", max_size=12), max_size=9), st.randoms())
def test_vectors_do_not_depend_on_order_or_other_strings(strings: list[str], random):
    encoder, places = make("lstm"), list(range(len(strings)))
    random.shuffle(places)
    together = encoder.vectors(strings)
    shuffled = encoder.vectors([strings[place] for place in places])
    np.testing.assert_allclose(shuffled, together[places], atol=1e-6)
    alone = [encoder.vectors([text])[0] for text in strings]
    np.testing.assert_allclose(together, np.reshape(alone, (-1, 7)), atol=1e-6)


@pytest.mark.parametrize("right_to_left", DIRECTIONS)
def test_characters_of_other_strings_have_no_gradient(right_to_left: bool):
    """A long string beside short ones: nothing behind their ends is computed."""
    encoder = make(right_to_left=right_to_left)
    strings = encoder.alphabet.ids(["go", "kitchens", "", "ab"])
    rows = encoder.rows.clone().requires_grad_()
    encoder.encode(rows, strings)[0].sum().backward()
    assert rows.grad is not None
    touched = rows.grad.any(dim=1).nonzero().squeeze(1)
    assert sorted(touched.tolist()) == sorted(set(strings[0].tolist()))


def test_packing_reads_each_character_once_longest_first():
    strings = Ragged.from_rows([[1], [], [2, 3, 4], [5, 6]])
    packing = pack_strings(strings, 99, right_to_left=False)
    assert packing.strings.tolist() == [2, 3, 0] and packing.batch_sizes.tolist() == [3, 2, 1]
    assert strings.values[packing.characters].tolist() == [2, 5, 1, 3, 6, 4]
    backwards = pack_strings(strings, 2, right_to_left=True)  # 4 is cut off
    assert strings.values[backwards.characters].tolist() == [3, 6, 1, 2, 5]
    assert backwards.batch_sizes.tolist() == [3, 2]


@pytest.mark.parametrize("right_to_left", DIRECTIONS)
def test_strings_are_truncated_to_max_length(right_to_left: bool):
    encoder = make(right_to_left=right_to_left, max_length=4)
    np.testing.assert_array_equal(encoder.vectors(["goalkeeper"]), encoder.vectors(["goal"]))


def test_unknown_characters_are_equal_and_not_skipped():
    encoder = make()
    assert encoder.alphabet.ids(["☃ꙮ", "\0", "g"]).values.tolist()[:3] == [0, 0, 0]
    one, other, without = encoder.vectors(["go☃l", "goꙮl", "gol"])
    np.testing.assert_allclose(one, other, atol=1e-6)
    assert np.abs(one - without).max() > 1e-3


def test_rare_characters_train_the_row_of_the_unknown():
    alphabet = Alphabet.from_strings(["aab", "cb"])
    assert alphabet.characters == "ab" and len(alphabet) == 3
    assert alphabet.ids(["abc"]).values.tolist() == [1, 2, 0]
    assert Alphabet.from_strings([]).ids(["a", ""]).values.tolist() == [0]


def test_dropout_is_drawn_in_training_alone():
    encoder = make(dropout=0.5)
    strings = encoder.alphabet.ids(WORDS)

    def drawn(seed: int) -> torch.Tensor:
        return encoder.encode(encoder.rows, strings, torch.Generator().manual_seed(seed))

    bare = encoder.encode(encoder.rows, strings)
    assert torch.equal(bare, encoder.encode(encoder.rows, strings))
    assert torch.equal(drawn(1), drawn(1)) and not torch.equal(drawn(1), drawn(2))
    assert not torch.equal(drawn(1), bare)
    encoder = make(dropout=0.0)
    assert torch.equal(drawn(1), encoder.encode(encoder.rows, strings))


def test_dropout_keeps_the_mean_of_what_is_read():
    encoder = make("elman", dropout=0.25, character_dim=1)
    with torch.no_grad():
        for parameter in encoder.cell.parameters():
            parameter.fill_(1e-3)  # tanh is all but linear there
    ids, rows = encoder.alphabet.ids(["k"] * 40_000), torch.ones_like(encoder.rows)
    plain, noisy = (encoder.encode(rows, ids, own) for own in (None, torch.Generator().manual_seed(0)))
    assert noisy.mean().item() == pytest.approx(plain.mean().item(), rel=0.01)


@pytest.mark.parametrize("cell", CELL_CLASSES)
def test_the_folder_gives_the_same_bits(cell: str, tmp_path: Path):
    encoder = make(cell, right_to_left=True)
    encoder.save(tmp_path)
    again = CharacterEncoder.open(tmp_path)
    assert (again.settings, again.alphabet) == (encoder.settings, encoder.alphabet)
    np.testing.assert_array_equal(again.vectors([*WORDS, "☃"]), encoder.vectors([*WORDS, "☃"]))


def test_vectors_depend_on_the_seed_and_leave_the_torch_rng_unchanged():
    before = torch.get_rng_state()
    one, other = make().vectors(WORDS), make().vectors(WORDS)
    assert torch.equal(before, torch.get_rng_state())
    np.testing.assert_array_equal(one, other)


def test_no_string_and_empty_strings():
    assert make().vectors([]).shape == (0, 7)
    assert not make().vectors(["", ""]).any()


@pytest.mark.gpu
@pytest.mark.parametrize("cell", CELL_CLASSES)
def test_a_gpu_gives_the_same(cell: str):
    here, there = make(cell).vectors(WORDS), make(cell).to(torch.device("cuda")).vectors(WORDS)
    np.testing.assert_allclose(there, here, atol=1e-5)
