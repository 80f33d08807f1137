"""Encodes strings by a recurrent network: the vector of a string is the state after its last character.

    h_t = cell(row[character t], h_{t−1}),   vector = h_{length}

Batches are packed, so that no padding is needed. Strings are sorted by decreasing length. The first
characters of all strings are followed by the second characters of all strings with at least two, and so on. A
step is a matrix product over the strings that have not ended. ``encode`` returns vectors in the original
order.

References:
    Cho et al. Learning Phrase Representations using RNN Encoder–Decoder. EMNLP 2014 (GRU).
    https://arxiv.org/abs/1406.1078. Hochreiter, Schmidhuber. Long Short-Term Memory. Neural Computation 1997.
    Elman. Finding Structure in Time. Cognitive Science 1990. Cells: torch's nn.GRU, nn.LSTM, nn.RNN.
"""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from safetensors.numpy import load_file, save_file

from storage.arrays import Ragged
from storage.lazy import Tensor, functional, nn, torch
from storage.shapes import Float32, Int64
from tasks.form import configurable, setting
from tasks.recurrent.alphabet import Alphabet

CELL_CLASSES = {"gru": "GRU", "lstm": "LSTM", "elman": "RNN"}  # name of a cell -> name of a class in torch.nn
_BATCH_STRINGS = 4096  # number of strings in a batch outside training


@configurable
class Recurrent:
    """Settings of a recurrent network that reads strings character by character."""

    cell: Literal["gru", "lstm", "elman"] = setting(
        "gru", "Recurrent cell: gated recurrent unit, long short-term memory, or plain (Elman)"
    )
    character_dim: int = setting(32, "Number of dimensions of a character embedding", ge=1, le=1024)
    hidden: int = setting(
        128, "Number of dimensions of the state, and of the vector of a string", ge=1, le=4096
    )
    dropout: float = setting(
        0.1, "Share of numbers in character embeddings that are set to zero in training", ge=0, lt=1
    )
    right_to_left: bool = setting(True, "Read strings from the last character to the first")
    max_length: int = setting(
        64, "Maximum number of characters of a string; longer strings are cut", ge=1, le=10_000
    )


class Packing(NamedTuple):
    """Order of the characters of a batch, in which the network reads them without padding."""

    strings: Int64[np.ndarray, " any"]  # numbers of the nonempty strings, longest first
    characters: Int64[np.ndarray, " chars"]  # index of each character in the values of the ragged array
    batch_sizes: Int64[np.ndarray, " any"]  # number of unfinished strings in each step


def pack_strings(strings: Ragged, max_length: int, *, right_to_left: bool) -> Packing:
    """Computes the order in which the network reads the characters of strings.

    Args:
        strings: Character ids of each string.
        max_length: Maximum number of characters of a string; longer strings are cut.
        right_to_left: Whether the network reads a string from its last character to the first.
    """
    lengths = np.minimum(strings.lengths, max_length)
    string_order = np.argsort(-lengths, kind="stable")[: np.count_nonzero(lengths)]
    sorted_lengths = lengths[string_order]
    finished_counts = np.cumsum(np.bincount(sorted_lengths, minlength=1))  # strings with at most each length
    batch_sizes = len(string_order) - finished_counts[:-1]
    step_starts = np.cumsum(batch_sizes) - batch_sizes
    step = np.repeat(np.arange(len(batch_sizes)), batch_sizes)
    ranks = np.arange(int(sorted_lengths.sum())) - step_starts[step]
    starts = strings.offsets[string_order]
    indices = (starts + sorted_lengths - 1)[ranks] - step if right_to_left else starts[ranks] + step
    return Packing(string_order, indices, batch_sizes)


class CharacterEncoder:
    """Encodes strings by a recurrent cell on the character embeddings ``rows``, float32 (characters, dim)."""

    def __init__(self, settings: Recurrent, alphabet: Alphabet, *, seed: int = 0) -> None:
        """Initializes all parameters at random, with the same distributions as torch."""
        self.settings, self.alphabet = settings, alphabet
        generator = torch.Generator().manual_seed(seed)
        self.rows = torch.randn(len(alphabet), settings.character_dim, generator=generator)
        self.rows[0] = 0.0  # row of rare characters; remains zero if training strings have none
        cell_class = getattr(nn, CELL_CLASSES[settings.cell])
        cell = cell_class(settings.character_dim, settings.hidden, device="meta")
        self.cell = cell.to_empty(device="cpu")
        bound = settings.hidden**-0.5
        with torch.no_grad():
            for parameter in self.cell.parameters():
                parameter.uniform_(-bound, bound, generator=generator)

    @property
    def device(self) -> "torch.device":
        """Device of the character embeddings and the parameters of the cell."""
        return self.rows.device

    def to(self, device: "torch.device") -> "CharacterEncoder":
        """Moves the encoder to a device and returns the encoder."""
        self.rows, self.cell = self.rows.to(device), self.cell.to(device)
        return self

    def encode(
        self, character_rows: Tensor, strings: Ragged, dropout: "torch.Generator | None" = None
    ) -> Tensor:
        """Computes the vector of each string, float32 (strings, hidden); zero for empty strings.

        Args:
            character_rows: Embeddings of characters, float32 (any, dim).
            strings: Row of ``character_rows`` for each character of each string.
            dropout: Random generator of dropout masks, on the CPU; None: no dropout.
        """
        packing = pack_strings(strings, self.settings.max_length, right_to_left=self.settings.right_to_left)
        vectors = character_rows.new_zeros(len(strings), self.settings.hidden)
        if not len(packing.strings):
            return vectors
        characters = torch.from_numpy(strings.values[packing.characters]).to(character_rows.device)
        inputs = functional.embedding(characters, character_rows)  # (chars, dim)
        if dropout is not None and self.settings.dropout:
            mask = torch.rand(inputs.shape, generator=dropout) >= self.settings.dropout
            inputs = inputs * mask.to(character_rows.device) / (1 - self.settings.dropout)
        _, state = self.cell(nn.utils.rnn.PackedSequence(inputs, torch.from_numpy(packing.batch_sizes)))
        state = state[0] if isinstance(state, tuple) else state  # an LSTM also returns a cell state
        return vectors.index_copy(0, torch.from_numpy(packing.strings).to(character_rows.device), state[0])

    def vectors(self, strings: Sequence[str]) -> Float32[np.ndarray, "strings hidden"]:
        """Computes the vector of each string, without dropout, in float32."""
        batch_vectors = [np.zeros((0, self.settings.hidden), dtype=np.float32)]
        # By default, cuDNN computes recurrent networks in TF32, whose mantissa has ten bits.
        without_tf32 = torch.backends.cudnn.flags(enabled=torch.backends.cudnn.enabled, allow_tf32=False)
        with torch.inference_mode(), without_tf32:
            for start in range(0, len(strings), _BATCH_STRINGS):
                ids = self.alphabet.ids(strings[start : start + _BATCH_STRINGS])
                batch_vectors.append(self.encode(self.rows, ids).cpu().numpy())
        return np.concatenate(batch_vectors)

    def describe(self) -> dict[str, Any]:
        """Returns the settings and the alphabet as JSON."""
        options = {field.name: getattr(self.settings, field.name) for field in dataclasses.fields(Recurrent)}
        return {**options, "alphabet": self.alphabet.characters}

    def arrays(self) -> dict[str, np.ndarray]:
        """Returns the character embeddings and the parameters of the cell, as arrays by name."""
        tensors = {"characters": self.rows, **dict(self.cell.named_parameters())}
        return {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}

    @staticmethod
    def restore(description: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> "CharacterEncoder":
        """Restores an encoder from the results of ``describe`` and ``arrays``."""
        settings = {name: value for name, value in description.items() if name != "alphabet"}
        encoder = CharacterEncoder(Recurrent(**settings), Alphabet(description["alphabet"]))
        encoder.rows = torch.from_numpy(arrays["characters"].copy())
        with torch.no_grad():
            for name, parameter in encoder.cell.named_parameters():
                parameter.copy_(torch.from_numpy(arrays[name]))
        return encoder

    def save(self, folder: Path) -> None:
        """Writes the encoder to the files recurrent.safetensors and recurrent.json in a folder."""
        save_file(self.arrays(), folder / "recurrent.safetensors")
        text = json.dumps(self.describe(), indent=1, ensure_ascii=False)
        (folder / "recurrent.json").write_text(text, encoding="utf-8")

    @staticmethod
    def open(folder: Path) -> "CharacterEncoder":
        """Reads the encoder that ``save`` has written to a folder."""
        description = json.loads((folder / "recurrent.json").read_text(encoding="utf-8"))
        return CharacterEncoder.restore(description, load_file(folder / "recurrent.safetensors"))
