"""The recurrent encoder: a string's vector is the last state of a recurrent network that reads its characters.

    h_t = cell(row[character t], h_{t−1}),   vector = h_{length}

Strings have different lengths. A batch is packed: strings sorted by length, longest first, and of all of them the
first character, then of those that have one the second, and so on. So each step is one matrix product over the
strings that are still being read, no padding is computed and none can leak into a state; the last state of
each is that after its own last character. Sorting and packing happen inside ``encode`` and are never seen outside.
The packed order is computed from lengths alone (one vectorised gather from the ragged array), so no padded
array is ever made.

References:
    Cho et al. Learning Phrase Representations using RNN Encoder–Decoder. EMNLP 2014 (GRU).
    https://arxiv.org/abs/1406.1078. Hochreiter, Schmidhuber. Long Short-Term Memory. Neural Computation 1997.
    Elman. Finding Structure in Time. Cognitive Science 1990. Cells are torch's nn.GRU, nn.LSTM and nn.RNN (tanh).
"""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from safetensors.numpy import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import PackedSequence

from storage.arrays import Ragged
from storage.shapes import Float32, Int64
from tasks.form import configurable, setting
from tasks.recurrent.alphabet import Alphabet

CELLS: dict[str, type[nn.RNNBase]] = {"gru": nn.GRU, "lstm": nn.LSTM, "elman": nn.RNN}
_CHUNK = 4096  # strings encoded at once outside training


@configurable
class Recurrent:
    """A recurrent network over characters."""

    cell: Literal["gru", "lstm", "elman"] = setting("gru", "Recurrent cell: gated, long short-term or plain")
    character_dim: int = setting(32, "Dimensions of a character's row", ge=1, le=1024)
    hidden: int = setting(128, "Dimensions of the state, and so of a string's vector", ge=1, le=4096)
    dropout: float = setting(0.1, "Share of the character rows' numbers left out in training", ge=0, lt=1)
    right_to_left: bool = setting(True, "Read from the last character to the first")
    max_length: int = setting(64, "Longer strings are cut behind so many characters", ge=1, le=10_000)


class Packing(NamedTuple):
    """The order in which a batch of strings is read."""

    strings: Int64[np.ndarray, " any"]  # those with a character, longest first
    characters: Int64[np.ndarray, " chars"]  # where each character is in the ragged array's values
    batch_sizes: Int64[np.ndarray, " any"]  # strings that have a character, by step


def pack(strings: Ragged, max_length: int, *, right_to_left: bool) -> Packing:
    """Packs strings, each at its first ``max_length`` characters."""
    lengths = np.minimum(strings.lengths, max_length)
    order = np.argsort(-lengths, kind="stable")[: np.count_nonzero(lengths)]
    longest = lengths[order]
    ended = np.cumsum(np.bincount(longest, minlength=1))  # strings of at most so many characters
    batch_sizes = len(order) - ended[:-1]
    starts = np.cumsum(batch_sizes) - batch_sizes
    step = np.repeat(np.arange(len(batch_sizes)), batch_sizes)
    rank = np.arange(int(longest.sum())) - starts[step]
    first = strings.offsets[order]
    places = (first + longest - 1)[rank] - step if right_to_left else first[rank] + step
    return Packing(order, places, batch_sizes)


class CharacterEncoder:
    """Strings to vectors; ``rows`` of characters, float32 (characters, dim), and the cell's dense parameters."""

    def __init__(self, settings: Recurrent, alphabet: Alphabet, *, seed: int = 0) -> None:
        """Random parameters, as torch draws them for the cell, from a generator of their own."""
        self.settings, self.alphabet = settings, alphabet
        generator = torch.Generator().manual_seed(seed)
        self.rows = torch.randn(len(alphabet), settings.character_dim, generator=generator)
        self.rows[0] = 0.0  # where no character is rare, that of unknown ones says nothing
        cell = CELLS[settings.cell](settings.character_dim, settings.hidden, device="meta")
        self.cell = cell.to_empty(device="cpu")
        bound = settings.hidden**-0.5
        with torch.no_grad():
            for parameter in self.cell.parameters():
                parameter.uniform_(-bound, bound, generator=generator)

    @property
    def device(self) -> torch.device:
        """Where rows and parameters are."""
        return self.rows.device

    def to(self, device: torch.device) -> "CharacterEncoder":
        """Moves rows and parameters; returns itself."""
        self.rows, self.cell = self.rows.to(device), self.cell.to(device)
        return self

    def encode(self, rows: Tensor, strings: Ragged, dropout: torch.Generator | None = None) -> Tensor:
        """Vectors of strings, float32 (strings, hidden), in their order; zeros for an empty one.

        Args:
            rows: float32 (any, dim), of characters.
            strings: The row of each character.
            dropout: Draws what is left out, on the CPU; None outside training.
        """
        packing = pack(strings, self.settings.max_length, right_to_left=self.settings.right_to_left)
        vectors = rows.new_zeros(len(strings), self.settings.hidden)
        if not len(packing.strings):
            return vectors
        characters = torch.from_numpy(strings.values[packing.characters]).to(rows.device)
        inputs = F.embedding(characters, rows)  # (chars, dim)
        if dropout is not None and self.settings.dropout:
            kept = torch.rand(inputs.shape, generator=dropout) >= self.settings.dropout
            inputs = inputs * kept.to(rows.device) / (1 - self.settings.dropout)
        _, last = self.cell(PackedSequence(inputs, torch.from_numpy(packing.batch_sizes)))
        state = last[0] if isinstance(last, tuple) else last  # an LSTM's cell state is left out
        return vectors.index_copy(0, torch.from_numpy(packing.strings).to(rows.device), state[0])

    def vectors(self, strings: Sequence[str]) -> Float32[np.ndarray, "strings hidden"]:
        """Vectors of strings, without dropout."""
        found = [np.zeros((0, self.settings.hidden), dtype=np.float32)]
        with torch.inference_mode():
            for start in range(0, len(strings), _CHUNK):
                ids = self.alphabet.ids(strings[start : start + _CHUNK])
                found.append(self.encode(self.rows, ids).cpu().numpy())
        return np.concatenate(found)

    def describe(self) -> dict[str, Any]:
        """Settings and alphabet as JSON has them."""
        return {**dataclasses.asdict(self.settings), "alphabet": self.alphabet.characters}

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything learnt, by name."""
        learnt = {name: tensor.detach() for name, tensor in self.cell.named_parameters()}
        return {name: tensor.cpu().numpy() for name, tensor in {"characters": self.rows, **learnt}.items()}

    @staticmethod
    def restore(about: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> "CharacterEncoder":
        """The encoder that ``describe`` and ``arrays`` say."""
        settings = {name: value for name, value in about.items() if name != "alphabet"}
        encoder = CharacterEncoder(Recurrent(**settings), Alphabet(about["alphabet"]))
        encoder.rows = torch.from_numpy(arrays["characters"].copy())
        with torch.no_grad():
            for name, parameter in encoder.cell.named_parameters():
                parameter.copy_(torch.from_numpy(arrays[name]))
        return encoder

    def save(self, folder: Path) -> None:
        """Writes recurrent.safetensors and recurrent.json."""
        save_file(self.arrays(), folder / "recurrent.safetensors")
        text = json.dumps(self.describe(), indent=1, ensure_ascii=False)
        (folder / "recurrent.json").write_text(text, encoding="utf-8")

    @staticmethod
    def open(folder: Path) -> "CharacterEncoder":
        """Reads what ``save`` wrote."""
        about = json.loads((folder / "recurrent.json").read_text(encoding="utf-8"))
        return CharacterEncoder.restore(about, load_file(folder / "recurrent.safetensors"))
