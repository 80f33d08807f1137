"""Ten million titles: bounded memory, linear time (benchmarks/text/titles.py measures)."""

from pathlib import Path

import pytest

from benchmarks.text.titles import measure_titles


@pytest.mark.slow
def test_the_benchmark_measures_both_stages():
    claims = {claim.name: claim for claim in measure_titles((10_000,))}
    assert len(claims) == 6 and all(claim.value > 0 for claim in claims.values())
    assert claims["tokenize, 10,000 titles: peak memory, GB"].value < 1


@pytest.mark.soak
@pytest.mark.timeout(6 * 3600)
def test_ten_million_titles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert [claim.name for claim in measure_titles((1_000_000, 10_000_000)) if claim.met is False] == []
