"""Computes the mean vector of e5, which the encoder subtracts: of 300 titles of each development guide.

Writes tasks/sentences/e5_mean.txt. If the file changes, so do all vectors of e5.
"""

import random
from pathlib import Path

import numpy as np

from benchmarks.text.text import titles
from tasks.sentences import e5

GUIDES = ("US1", "ZA1", "FR1", "NL1", "NO1", "GR1", "magenta_de_2022-05")
PER_GUIDE = 300

if __name__ == "__main__":
    texts = [text for guide in GUIDES for text in random.Random(0).sample(titles(guide), PER_GUIDE)]
    file = Path(e5.__file__).with_name("e5_mean.txt")
    np.savetxt(file, e5.encode_uncentred(texts).mean(axis=0)[None], fmt="%.5f")
