"""A checkpoint of an offloaded table is written and read piece by piece: memory for a few pieces, not for the
table."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TABLE_MB = 307  # 100,000 rows of 256 with both moments

CODE = """
import sys
from pathlib import Path
from safetensors import safe_open
from storage.tables import Offloaded, random_rows, write_safetensors
from tasks.optimizers import Adam

def megabytes(name):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name)) / 1024

table, file = Offloaded(random_rows(100_000, 256, 0.1, 1), Adam(), cache_rows=2_000), Path(sys.argv[1])
before, peak = megabytes("RssAnon"), megabytes("VmHWM")
write_safetensors(file, table.sections(), {})
print(megabytes("VmHWM") - peak)
with safe_open(file, framework="pt") as opened:
    table.restore(opened.get_slice)
    print(megabytes("RssAnon") - before)
print(before)
"""


@pytest.mark.slow
@pytest.mark.skipif(
    not Path("/proc/self").exists(), reason="reads this process' memory in /proc, which is Linux'"
)
def test_a_checkpoint_takes_no_second_copy(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path / "table.safetensors")],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    written, read, before = map(float, done.stdout.split())
    assert (tmp_path / "table.safetensors").stat().st_size > TABLE_MB * 1e6 and before > TABLE_MB * 0.9
    assert written < 80 and read < 80  # a few pieces of 16 MiB
