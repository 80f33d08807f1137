"""Names and batches for MLflow: what it takes as a metric or parameter, made of what we have.

One call of 1,000 metrics costs a server 0.13 s, 1,000 calls of one 17 s: metrics are buffered. MLflow takes letters, digits and
``_ - . : / space`` in a name, and shows ``a/b`` as chart b in the section a.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

BATCH = 1000  # metrics in one call, MLflow's bound
NAME_LENGTH = 250
PARAM_LENGTH = 6000
Point = tuple[str, float, int, int]  # name, value, milliseconds since 1970, step


class MetricBuffer:
    """Collects metrics over steps and sends them a thousand at a time, or after a few seconds: a chart that can be watched.

    Args:
        send: Takes at most ``BATCH`` points.
        seconds: A point waits no longer than this for company, as long as others come.
    """

    def __init__(self, send: Callable[[Sequence[Point]], None], seconds: float = 2.0) -> None:
        self._send = send
        self._seconds = seconds
        self._points: list[Point] = []
        self._sent = time.monotonic()

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Keeps the metrics of one step; sends when the batch is full or old."""
        now = time.time_ns() // 1_000_000
        self._points.extend((metric_name(name), float(value), now, step) for name, value in metrics.items())
        if len(self._points) >= BATCH or time.monotonic() - self._sent >= self._seconds:
            self.flush()

    def flush(self) -> None:
        """Sends what is there."""
        while self._points:
            batch = self._points[:BATCH]
            self._send(batch)
            del self._points[: len(batch)]  # after it arrived: what could not be sent stays
        self._sent = time.monotonic()

    def __enter__(self) -> MetricBuffer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.flush()


def metric_name(*parts: object) -> str:
    """A name that MLflow takes: parts joined by ``/``, other characters replaced by ``_``."""
    pieces = [re.sub(r"[^\w.\- :]", "_", str(piece)).strip() for part in parts for piece in str(part).split("/")]
    pieces = [piece if piece.strip(".") else piece.replace(".", "_") for piece in pieces if piece]  # MLflow reads names as paths
    return "/".join(pieces)[:NAME_LENGTH].rstrip("/") or "_"


def flatten_scores(scores: Mapping[str, Any]) -> dict[str, float]:
    """The scores document as metrics: ``unseen_title/title_only/knn/accuracy``.

    The level ``protocols`` is left out; booleans become 0 and 1; texts, nulls, values that are not finite and lists (the intervals:
    scores.json among the run's files has them) are no metrics.
    """
    return {metric_name(*(path[1:] if path[0] == "protocols" and len(path) > 1 else path)): value for path, value in _numbers(scores, ())}


def _numbers(value: object, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], float]]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _numbers(item, (*path, str(name)))
    elif isinstance(value, bool | int | float) and math.isfinite(value):
        yield path, float(value)


def flatten_params(params: object, prefix: str = "") -> dict[str, str]:
    """Nested settings (mappings or dataclasses) as ``train.rule.name`` → text.

    Lists are written as JSON. A value above MLflow's bound ends with the count of characters it had.
    """
    if dataclasses.is_dataclass(params) and not isinstance(params, type):
        params = {field.name: getattr(params, field.name) for field in dataclasses.fields(params)}
    if isinstance(params, Mapping):
        flat: dict[str, str] = {}
        for name, value in params.items():
            flat |= flatten_params(value, f"{prefix}.{name}" if prefix else str(name))
        return flat
    text = json.dumps(params, ensure_ascii=False, default=str) if isinstance(params, list | tuple | dict) else str(params)
    if len(text) > PARAM_LENGTH:
        ending = f"… ({len(text)} characters)"
        text = text[: PARAM_LENGTH - len(ending)] + ending
    return {metric_name(prefix): text}
