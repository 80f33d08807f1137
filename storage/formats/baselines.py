"""Reads and writes baselines.json: the scores of simple models on held-out titles.

Scores are stored by form (input of the model: title alone, or title with airing context) and protocol
(held-out set). If a simple model could not be evaluated, its ``n`` (number of scored titles) is 0, and the
reason is stored.
"""

import json
from collections.abc import Mapping
from pathlib import Path

FILE = "baselines.json"
BaselineScores = dict[tuple[str, str], Mapping[str, object]]  # scores[form, protocol][baseline]


def write_baselines(folder: Path, scores: BaselineScores) -> None:
    """Writes baselines.json; ``scores`` maps (form, protocol) to the scores by name of the simple model."""
    entries = [
        {"form": form, "protocol": protocol, "scores": model_scores}
        for (form, protocol), model_scores in scores.items()
    ]
    (folder / FILE).write_text(json.dumps(entries, indent=1), encoding="utf-8")


def read_baselines(folder: Path) -> BaselineScores:
    """Reads baselines.json. Returns a dictionary from (form, protocol) to the scores by simple model."""
    entries = json.loads((folder / FILE).read_text(encoding="utf-8"))
    return {(entry["form"], entry["protocol"]): entry["scores"] for entry in entries}
