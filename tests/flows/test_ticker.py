"""A stage that has been silent for some seconds is named, and only then; a terminal has a bar instead."""

import io
import sys
import time

from flows.cli import progress as console
from flows.cli.progress import STAGES, Ticker


def test_says_what_is_at_work_by_itself(monkeypatch, capsys):
    monkeypatch.setattr(console, "QUIET_SECONDS", 0)
    with Ticker(time.perf_counter()) as clock:
        clock.print("cluster", "reads")
        printed = ""
        while printed.count("\n") < 2:
            printed += capsys.readouterr().out
    assert "cluster" in printed.splitlines()[1] and "at work for " in printed.splitlines()[1]


def test_says_what_is_at_work_only_after_a_silence(monkeypatch, capsys):
    clock, now = Ticker(100.0), 100.0
    monkeypatch.setattr(console.time, "perf_counter", lambda: now)
    clock.print("evaluate", "done", ended=True)
    clock.print("cluster", "reads")
    now = 102.9
    clock.report_quiet(now)
    clock.print("cluster", "writes")
    for now in (104.0, 105.8, 105.9, 108.0, 108.9):
        clock.report_quiet(now)
    assert [line.split(maxsplit=2) for line in capsys.readouterr().out.splitlines()] == [
        ["0.0", "s", "evaluate    done"],
        ["0.0", "s", "cluster     reads"],
        ["2.9", "s", "cluster     writes"],
        ["5.9", "s", "cluster     at work for 6 s"],
        ["8.9", "s", "cluster     at work for 9 s"],
    ]


def test_a_terminal_has_a_bar_of_stages(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdout", screen)
    with Ticker(time.perf_counter()) as clock:
        clock.print("preprocess", "done", ended=True)
        clock.print("train", "epoch 1 of 5")
        while f"1/{len(STAGES)}" not in screen.getvalue():  # a thread of rich draws it
            pass
    assert "epoch 1 of 5" in screen.getvalue()
    assert f"1/{len(STAGES)}" in screen.getvalue() and "━" in screen.getvalue()
    assert screen.getvalue().rstrip().endswith(("\x1b[?25h", "\x1b[2K"))  # the cursor is back, the bar gone
