"""Character encoder beside torch's recurrent cells, for single words and for packed batches.

Our time includes everything from strings to vectors: characters to rows, sorting, packing, reading, and
restoring the order of the words. The time of torch includes only its cell, with rows that were looked up
before. CPU seconds of one thread, medians; each encoder runs in a separate process.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np

from benchmarks.claims import Claim
from benchmarks.processes import call_apart
from benchmarks.text.fasttext_reader import random_words

Cell = Literal["gru", "lstm", "elman"]
CELLS: tuple[Cell, ...] = ("gru", "lstm", "elman")
BATCH = 4_096


def claims(quick: bool) -> Iterator[Claim]:
    """Measures words per second of each cell, with targets for the GRU, and a training step."""
    repeats = 3 if quick else 15
    for cell in CELLS:
        ours = BATCH / call_apart(packed, cell, repeats, threads=1)
        alone = call_apart(one_at_a_time, cell, repeats, rival=True, threads=1)
        torchs = BATCH / call_apart(torch_packed, cell, repeats, rival=True, threads=1)
        aims = (5, 0.9) if cell == "gru" else (None, None)
        rivals = (f"torch's {cell}, a word at a time", alone), (f"torch's {cell}, packed before", torchs)
        for (rival, value), aim in zip(rivals, aims, strict=True):
            name = f"{cell}, {BATCH} words, 32 × 128, words/s"
            yield Claim(name, ours, rival, value, aim=aim)
    ours, torchs = (
        BATCH / call_apart(step, repeats, threads=1, rival=step is torch_step)
        for step in (our_step, torch_step)
    )
    name = f"gru, forward and backward, {BATCH} words, words/s"
    yield Claim(name, ours, "torch's gru, packed before", torchs)


def _words(count: int) -> list[str]:
    return random_words(count, np.random.default_rng(0))


def _encoder(cell: Cell) -> Any:
    from tasks.recurrent.alphabet import Alphabet
    from tasks.recurrent.encoder import CharacterEncoder, Recurrent

    words = _words(BATCH)
    return CharacterEncoder(Recurrent(cell=cell, hidden=128, character_dim=32), Alphabet.of(words)), words


def _median(work: Callable[[], object], repeats: int) -> float:
    taken = []
    work()
    for _ in range(repeats):
        begun = time.process_time()
        work()
        taken.append(time.process_time() - begun)
    return statistics.median(taken)


def packed(cell: Cell, repeats: int) -> float:
    encoder, words = _encoder(cell)
    return _median(lambda: encoder.vectors(words), repeats)


def our_step(repeats: int) -> float:
    """Measures vectors of a batch and gradients of all parameters and character rows, with dropout."""
    import torch

    encoder, words = _encoder("gru")
    strings, rows = encoder.alphabet.ids(words), encoder.rows.requires_grad_()
    dropout = torch.Generator().manual_seed(0)
    return _median(lambda: encoder.encode(rows, strings, dropout).sum().backward(), repeats)


def _inputs(cell: Cell) -> tuple[Any, list[Any]]:
    """Returns the torch cell, and the rows of the characters of each word, float32 (chars, 32)."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    kinds = {"gru": nn.GRU, "lstm": nn.LSTM, "elman": nn.RNN}
    rows = torch.randn(0x250, 32)
    return kinds[cell](32, 128), [rows[torch.tensor([*map(ord, word)])] for word in _words(BATCH)]


def one_at_a_time(cell: Cell, repeats: int) -> float:
    """Returns words per second of a loop over single words."""
    import torch

    read, words = _inputs(cell)
    some = words[:400]
    with torch.inference_mode():
        return len(some) / _median(lambda: [read(word) for word in some], repeats)


def torch_packed(cell: Cell, repeats: int) -> float:
    import torch
    from torch.nn.utils.rnn import pack_sequence

    read, words = _inputs(cell)
    batch = pack_sequence(words, enforce_sorted=False)
    with torch.inference_mode():
        return _median(lambda: read(batch), repeats)


def torch_step(repeats: int) -> float:
    from torch.nn.utils.rnn import pack_sequence

    read, words = _inputs("gru")
    batch = pack_sequence(words, enforce_sorted=False)
    return _median(lambda: read(batch)[1].sum().backward(), repeats)
