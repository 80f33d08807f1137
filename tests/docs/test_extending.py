"""All steps of docs/extending.md, applied to a copy of the project."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COPIED = ("flows", "tasks", "storage", "deployments", "tests", "sample", "pyproject.toml")
BLOCK = re.compile(r"(?:^`([\w/.]+)`:\n\n)?```(python|diff|console)\n(.*?)```", re.MULTILINE | re.DOTALL)


def sections() -> list[tuple[str, str]]:
    parts = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8").split("\n## ")[1:]
    return [(part.partition("\n")[0], part) for part in parts]


def apply(diff: str, text: str) -> str:
    """The text with the lines marked - replaced by those marked +; imports go to the first import of ours."""
    lines = diff.splitlines()
    for line in lines:
        if line.startswith("+from "):
            at = text.index("\nfrom tasks") + 1
            text = text[:at] + line[1:] + "\n" + text[at:]
    removed = "\n".join(line[1:] for line in lines if line.startswith("-"))
    added = "\n".join(line[1:] for line in lines if line.startswith("+") and not line.startswith("+from "))
    assert text.count(removed) == 1, f"the page removes what is not there: {removed}"
    return text.replace(removed, added)


@pytest.mark.parametrize(("name", "section"), sections(), ids=[name for name, _ in sections()])
def test_diffs_of_the_page_apply(name: str, section: str) -> None:
    diffs = [(file, content) for file, kind, content in BLOCK.findall(section) if kind == "diff"]
    assert diffs, name
    for file, content in diffs:
        text = (ROOT / file).read_text(encoding="utf-8")
        assert apply(content, text) != text


@pytest.mark.slow
@pytest.mark.parametrize(("name", "section"), sections(), ids=[name for name, _ in sections()])
def test_following_the_page_adds_one(name: str, section: str, tmp_path: Path) -> None:
    for part in COPIED:
        if (ROOT / part).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.gz", "vectors")
            shutil.copytree(ROOT / part, tmp_path / part, ignore=ignored)
        else:
            shutil.copy(ROOT / part, tmp_path)
    kinds = []
    for file, kind, content in BLOCK.findall(section):
        kinds.append(kind)
        if kind == "python":
            assert not (tmp_path / file).exists()
            (tmp_path / file).write_text(content, encoding="utf-8")
        elif kind == "diff":
            target = tmp_path / file
            target.write_text(apply(content, target.read_text(encoding="utf-8")), encoding="utf-8")
        else:
            command = [sys.executable, *shlex.split(content)[1:]]
            done = subprocess.run(command, cwd=tmp_path, capture_output=True, encoding="utf-8", timeout=200)
            assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
            shown = done.stdout + done.stderr
            if "pytest" in command:
                passed = re.search(r"(\d+) passed", shown)
                assert passed and int(passed.group(1)) >= 3, shown[-500:]
            elif "ingest" in command:
                assert re.search(r"\b1 stored", shown), shown[-500:]
    assert kinds[:3] == ["python", "diff", "console"] and set(kinds[3:]) <= {"console"}
