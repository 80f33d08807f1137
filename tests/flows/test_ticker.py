"""Silence is broken: after a few quiet seconds the stage at work is named, and only then."""

import time

from flows import ticker
from flows.ticker import Ticker


def test_says_what_is_at_work_once_it_was_quiet_for_long(monkeypatch, capsys):
    monkeypatch.setattr(ticker, "QUIET_SECONDS", 0.6)
    clock = Ticker(time.perf_counter())
    clock.heard("cluster")
    with clock.ticking():
        time.sleep(1.3)
    said = capsys.readouterr().out.splitlines()
    assert said and all("cluster" in line and "at work for" in line for line in said)


def test_says_nothing_while_others_speak(monkeypatch, capsys):
    monkeypatch.setattr(ticker, "QUIET_SECONDS", 1.5)
    clock = Ticker(time.perf_counter())
    with clock.ticking():
        for _ in range(40):  # two seconds: silence would be broken once
            clock.heard("train")
            time.sleep(0.05)
    assert capsys.readouterr().out == ""
