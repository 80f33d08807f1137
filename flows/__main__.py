"""Runs the command ``guidespace`` when it is called as ``python -m flows``."""

from flows.cli.main import entry

if __name__ == "__main__":
    entry()
