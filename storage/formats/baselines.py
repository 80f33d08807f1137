"""Reads and writes baselines.json: the scores of simple models on held-out titles.

Scores are stored by form (input of the model: title alone, or with airing context) and protocol (held-out
set). If a simple model could not be evaluated, ``n`` is 0 and the reason is stored.
"""

import json
from collections.abc import Mapping
from pathlib import Path

FILE = "baselines.json"
BaselineScores = dict[tuple[str, str], Mapping[str, object]]  # scores[form, protocol][baseline]


def write_baselines(folder: Path, scores: BaselineScores) -> None:
    """Writes baselines.json; ``scores`` maps (form of the input, held-out set) to scores by simple model."""
    rows = [{"form": key[0], "protocol": key[1], "scores": values} for key, values in scores.items()]
    (folder / FILE).write_text(json.dumps(rows, indent=1), encoding="utf-8")


def read_baselines(folder: Path) -> BaselineScores:
    """Reads baselines.json; returns scores by (form of the input, held-out set), then by simple model."""
    return {
        (row["form"], row["protocol"]): row["scores"]
        for row in json.loads((folder / FILE).read_text(encoding="utf-8"))
    }
