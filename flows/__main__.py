"""``python -m flows``: the command ``guidespace``."""

from flows.cli.main import entry

if __name__ == "__main__":
    entry()
