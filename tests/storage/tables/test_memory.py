"""Initialisation, checkpoints and loading of an offloaded table need a tenth more memory than the table."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

SAMPLER = """
import sys, threading, time
from pathlib import Path

class Peak:  # anonymous memory of this process, in MB, above that at the start
    def __init__(self):
        self.start, self.now, self.ended = self.read(), 0.0, False
        threading.Thread(target=self.sample, daemon=True).start()
    def read(self):
        lines = open("/proc/self/status").read().splitlines()
        return next(int(line.split()[1]) for line in lines if line[:7] == "RssAnon") * 1024 / 1e6
    def sample(self):
        while True:
            self.now = max(self.now, self.read() - self.start)
            time.sleep(0.001)
    def report(self, what):
        time.sleep(0.01)
        print(what, self.now)
"""

TABLE = (
    SAMPLER
    + """
from safetensors import safe_open
from storage.tables import Offloaded, random_rows, write_safetensors
from tasks.optimizers import Adam

Offloaded(random_rows(1_000, 256, 0.1, 1), Adam(), cache_rows=200)
peak, rows, file = Peak(), random_rows(100_000, 256, 0.1, 1), Path(sys.argv[1]) / "table"
table = Offloaded(rows, Adam(), cache_rows=2_000)
peak.report("initialisation")
table.start_from(rows, Adam())
peak.report("start from other rows")
write_safetensors(file, table.sections(), {})
peak.report("checkpoint")
with safe_open(file, framework="pt") as opened:
    table.restore(opened.get_slice)
peak.report("loading")
"""
)

TRAINING = (
    SAMPLER
    + """
from dataclasses import replace
import numpy as np, torch
from storage.formats.corpus import open_corpus
from tasks.train.checkpoint import Position, read_checkpoint, write_checkpoint
from tasks.train.settings import TrainSettings
from tasks.train.step import Trainer
from tasks.train.tables import OffloadedTable

small, file = open_corpus(Path(sys.argv[2])), Path(sys.argv[1]) / "checkpoint"
settings = TrainSettings(dim=256, table=OffloadedTable(cache_rows=4_000))
Trainer(small, replace(settings, table=OffloadedTable(cache_rows=40)), torch.device("cpu"))
tokens = 300_000
corpus = replace(small, kinds=np.zeros(tokens, np.int8), weights=np.ones(tokens, np.float32))
peak = Peak()
trainer = Trainer(corpus, settings, torch.device("cpu"))
peak.report("initialisation")
write_checkpoint(file, trainer, Position())
peak.report("checkpoint")
read_checkpoint(file, trainer)
peak.report("loading")
"""
)


@pytest.mark.skipif(
    not Path("/proc/self").exists(), reason="reads this process' memory in /proc, which is Linux'"
)
@pytest.mark.parametrize("code", [TABLE, TRAINING], ids=["table", "training"])
@pytest.mark.slow
def test_peak_memory_is_the_table_and_a_tenth(code: str, toy_corpus: Path, tmp_path: Path):
    """307 MB: 100,000 rows of 256 with both moments, or 300,000 rows with one number of state each."""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path), str(toy_corpus)],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert next(tmp_path.iterdir()).stat().st_size > 307e6
    peaks = {what: float(peak) for what, peak in (line.rsplit(" ", 1) for line in done.stdout.splitlines())}
    assert len(peaks) >= 3 and all(300 < peak < 1.1 * 307.2 for peak in peaks.values()), peaks
