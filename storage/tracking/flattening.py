"""Flattens nested scores and settings to MLflow metrics and parameters, with names that MLflow accepts."""

import dataclasses
import json
import math
import re
from collections.abc import Mapping
from typing import Any

NAME_LENGTH = 250  # MLflow's limit for the name of a metric
PARAM_LENGTH = 6000  # MLflow's limit for a parameter


def metric_name(*parts: object) -> str:
    """Joins texts with "/" to a valid name of an MLflow metric, replacing characters that MLflow rejects.

    MLflow shows the metric ``a/b`` as chart b in section a.
    """
    words = "/".join(map(str, parts)).split("/")
    words = [re.sub(r"[^\w.\- :]", "_", word).strip() for word in words]
    # MLflow interprets names as paths, so "." and ".." are replaced
    words = [word if word.strip(".") else word.replace(".", "_") for word in words if word]
    return "/".join(words)[:NAME_LENGTH].rstrip("/") or "_"


def shorten_kind_scores(scores: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a copy of the scores with only three metrics per kind of programme (film, series …)."""
    names = "precision", "recall", "average_precision"
    kinds = {
        kind: {name: sets["all"][name] for name in names} for kind, sets in scores.get("kinds", {}).items()
    }
    return {**scores, "kinds": kinds}


def flatten_scores(scores: Mapping[str, Any], *path: str) -> dict[str, float]:
    """Flattens nested scores to metrics such as ``unseen_title/title_only/knn/accuracy``.

    Booleans become 0 and 1; strings, nulls, non-finite values and lists (confidence intervals) are omitted.
    """
    metrics: dict[str, float] = {}
    for name, value in scores.items():
        if isinstance(value, Mapping):
            metrics |= flatten_scores(value, *(() if name == "protocols" and not path else (*path, name)))
        elif isinstance(value, bool | int | float) and math.isfinite(value):
            metrics[metric_name(*path, name)] = float(value)
    return metrics


def flatten_params(params: object, prefix: str = "") -> dict[str, str]:
    """Flattens nested settings to texts by name, such as "train.optimizer.name", for MLflow parameters.

    Lists become JSON. Values that exceed MLflow's limit are truncated.
    """
    if dataclasses.is_dataclass(params) and not isinstance(params, type):
        params = dataclasses.asdict(params)
    if isinstance(params, Mapping):
        nested = (flatten_params(value, f"{prefix}.{name}".lstrip(".")) for name, value in params.items())
        return {name: text for flat_params in nested for name, text in flat_params.items()}
    is_list = isinstance(params, list | tuple)
    text = json.dumps(params, ensure_ascii=False, default=str) if is_list else str(params)
    if len(text) > PARAM_LENGTH:
        ending = f"… ({len(text)} characters)"
        text = text[: PARAM_LENGTH - len(ending)] + ending
    return {metric_name(prefix): text}
