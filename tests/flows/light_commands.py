"""Commands of a light installation; as a program, runs them where packages of `night` cannot be imported.

python -m tests.flows.light_commands HOME FOLDER    prints an exit code per command, as JSON
"""

import importlib.abc
import json
import sys
from pathlib import Path
from typing import Any

from flows.cli.installation import NIGHT_PACKAGES

SAMPLE = Path(__file__).resolve().parents[2] / "sample" / "guide.xml.gz"
SHOW, OTHER = "Murder, She Wrote", "Midsomer Murders"


def light_commands(home: Path, folder: Path) -> list[list[str]]:
    """Command lines for the home of a run on the sample guide; files are written to the folder."""
    words, days = folder / "words.vec", ["--from", "2026-01-12T00:00+00:00", "--hours", "120"]
    of_home: list[list[Any]] = [
        ["similar", SHOW],
        ["similar", "A Film That No Guide Has"],
        ["explain", SHOW, OTHER],
        ["explain", SHOW],
        ["duplicates"],
        ["scores"],
        ["categories"],
        ["status"],
        ["sql", "SELECT count(*) FROM titles"],
        ["export", folder / "titles.parquet", "--format", "parquet"],
        ["export", words, "--format", "vec"],
        ["export", folder / "champion.zip", "--format", "model"],
        ["similar", SHOW, "--model", folder / "champion.zip"],
        ["like", SHOW],
        ["tonight", *days, "--out", folder / "tonight.html"],
        ["enrich", SAMPLE, folder / "filled.xml", "--episodes"],
        ["guide", folder / "guide.xml.gz", "--for", "kodi", "--set", "guide.days_back=3650"],
        ["correct", OTHER, "crime"],
        ["zone"],
        ["ingest", "--feed", SAMPLE],
        ["doctor"],
    ]
    commands = [*([*command, "--home", home] for command in of_home), ["neighbours", words, "murder"]]
    return [list(map(str, command)) for command in commands]


class WithoutNight(importlib.abc.MetaPathFinder):
    """Raises on the import of a package of the extra `night`."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.partition(".")[0] in NIGHT_PACKAGES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def main(home: Path, folder: Path) -> None:
    """Runs the commands, loads the model as `serve` does, and calls two commands of a full installation."""
    sys.meta_path.insert(0, WithoutNight())
    from flows.cli.main import main as run
    from flows.serving.app import make_app
    from flows.serving.reloader import ModelReloader

    codes = {" ".join(command): run(command) for command in light_commands(home, folder)}
    reloader = ModelReloader(home)
    reloader.reload_if_stale()
    make_app(reloader)
    night = [run(["nightly", "--feed", str(SAMPLE), "--home", str(folder / "new")]), run(["settings"])]
    print("\n" + json.dumps({"codes": codes, "night": night, "made": (folder / "new").exists()}))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
