"""The examples of docs/offload.md run unchanged."""

import re
from pathlib import Path

import torch

PAGE = (Path(__file__).parents[2] / "docs" / "offload.md").read_text(encoding="utf-8")


def test_the_examples_train():
    code, collection = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    found: dict = {}
    exec(collection, found)
    assert found["tables"].steps == 1 and found["vectors"]["seen"].shape == (2, 16)
    exec(code, found)
    losses, embedding = found["losses"], found["embedding"]
    assert sum(losses[-20:]) < 0.75 * sum(losses[:20])
    rows = torch.nn.functional.normalize(embedding.state_dict()["weight"][: found["WORDS"]], dim=1)
    nearest = (rows @ rows.T).fill_diagonal_(-1).argmax(1)
    assert (nearest // 10 == torch.arange(len(rows)) // 10).float().mean() > 0.9
