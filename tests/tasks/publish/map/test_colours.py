"""Colours of the map with colour vision deficiencies and against the background.

Simulated by G. M. Machado, M. M. Oliveira, L. A. F. Fernandes, A physiologically-based model for simulation
of color vision deficiency, 2009 (severity 1); distances in B. Ottosson's OKLab, 2020; contrast as in WCAG 2.
"""

import re

import numpy as np
import pytest

from tasks.pages import THEME
from tasks.publish.map.page import FOLDER

VISIONS = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
}
CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
OKLAB = np.array(
    [
        [0.2104542553, 0.793617785, -0.0040720468],
        [1.9779984951, -2.428592205, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.808675766],
    ]
)


def linear(colours: list[str]) -> np.ndarray:
    """Linear light of colours like #476fdb, shape (colours, 3)."""
    bytes_ = np.array([[int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)] for colour in colours])
    return np.where(bytes_ <= 0.04045, bytes_ / 12.92, ((bytes_ + 0.055) / 1.055) ** 2.4)


def palette() -> list[str]:
    text = (FOLDER / "map_colours.js").read_text(encoding="utf-8")
    return re.findall(r"#[0-9a-f]{6}", re.search(r"PALETTE = \[(.*?)\]", text, re.DOTALL)[1])


def distances(colours: list[str], vision: str) -> np.ndarray:
    """OKLab distances of all pairs of different colours."""
    seen = np.cbrt(np.clip(linear(colours) @ VISIONS[vision].T, 0, 1) @ CONES.T) @ OKLAB.T
    return np.linalg.norm(seen[:, None] - seen[None], axis=2)[np.triu_indices(len(colours), 1)]


def test_colours_are_distinct_in_every_vision():
    colours = palette()
    assert len(set(colours)) == 20
    red_olive = ["#ff0000", "#808000"]
    assert distances(red_olive, "deuteranopia")[0] < distances(red_olive, "normal")[0] / 2
    for vision in VISIONS:
        assert distances(colours[:8], vision).min() > 0.095, vision  # .02 is barely visible
        assert distances(colours, vision).min() > 0.05, vision
    assert distances(colours, "normal").min() > 0.09


@pytest.mark.parametrize(("ground", "least"), [("#f7f8fa", 2.2), ("#0f1218", 3.0)], ids=["light", "dark"])
def test_contrast_with_the_background(ground: str, least: float):
    assert f"{ground}" in THEME.read_text(encoding="utf-8")
    light = linear([*palette(), ground]) @ [0.2126, 0.7152, 0.0722]
    contrast = (np.maximum(light[:-1], light[-1]) + 0.05) / (np.minimum(light[:-1], light[-1]) + 0.05)
    assert contrast.min() >= least
