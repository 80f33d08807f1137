"""A stage that has been silent for some seconds is named, and only then; a terminal has a bar instead."""

import io
import sys
import time

from flows import console
from flows.console import STAGES, Ticker


def test_says_what_is_at_work_once_it_was_quiet_for_long(monkeypatch, capsys):
    monkeypatch.setattr(console, "QUIET_SECONDS", 0.6)
    with Ticker(time.perf_counter()) as clock:
        clock.print("evaluate", "done", ended=True)
        clock.print("cluster", "reads")
        said = ""
        while said.count("\n") < 3:
            time.sleep(0.05)
            said += capsys.readouterr().out
    _, _, *silent = said.splitlines()
    assert silent and all("cluster" in line and "at work for" in line for line in silent)


def test_says_nothing_while_others_speak(monkeypatch, capsys):
    monkeypatch.setattr(console, "QUIET_SECONDS", 1.5)
    with Ticker(time.perf_counter()) as clock:
        for _ in range(40):  # two seconds: silence would be broken once
            clock.print("train", "a step")
            time.sleep(0.05)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 40 and all(line.endswith("s  train       a step") for line in lines)


def test_a_terminal_has_a_bar_of_stages(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdout", screen)
    with Ticker(time.perf_counter()) as clock:
        clock.print("preprocess", "done", ended=True)
        clock.print("train", "epoch 1 of 5")
        time.sleep(0.4)
    assert "epoch 1 of 5" in screen.getvalue()
    assert f"1/{len(STAGES)}" in screen.getvalue() and "━" in screen.getvalue()
    assert screen.getvalue().rstrip().endswith(("\x1b[?25h", "\x1b[2K"))  # the cursor is back, the bar gone
