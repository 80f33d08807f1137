"""Format of Baselines: baselines.json, the scores of each held-out set in the format of scores.json.

A held-out set is a pair (form, protocol) as in answers.py. A baseline that could not be evaluated has ``n`` 0
and a reason.
"""

import json
from collections.abc import Mapping
from pathlib import Path

FILE = "baselines.json"
BaselineScores = dict[tuple[str, str], Mapping[str, object]]  # scores[form, protocol][baseline]


def write_baselines(folder: Path, scores: BaselineScores) -> None:
    """Writes the scores by (form, protocol)."""
    rows = [{"form": key[0], "protocol": key[1], "scores": values} for key, values in scores.items()]
    (folder / FILE).write_text(json.dumps(rows, indent=1), encoding="utf-8")


def read_baselines(folder: Path) -> BaselineScores:
    """Reads the scores by (form, protocol)."""
    return {
        (row["form"], row["protocol"]): row["scores"]
        for row in json.loads((folder / FILE).read_text(encoding="utf-8"))
    }
