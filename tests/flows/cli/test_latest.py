"""Files of earlier versions are read with the present names."""

import json
from pathlib import Path

from storage.home.latest import folders_of_last_run, last_instant, read_scores
from storage.home.workspace import Workspace


def test_precision_at_10_of_an_earlier_version_is_precision_at_k(tmp_path: Path) -> None:
    Workspace(tmp_path)
    (tmp_path / "scores.json").write_text(
        json.dumps({"protocols": {"precision_at_10": 0.5}}), encoding="utf-8"
    )
    assert folders_of_last_run(tmp_path) == set() and last_instant(tmp_path) == ""
    latest = {"champion": True}
    paths = dict.fromkeys(("map", "scores", "model", "corpus"), "scores.json")
    (tmp_path / "latest.json").write_text(json.dumps(latest | paths), encoding="utf-8")
    assert folders_of_last_run(tmp_path) == {tmp_path} and last_instant(tmp_path) > "2999"
    assert read_scores(tmp_path) == {"protocols": {"precision_at_k": 0.5}, "champion": True}
