"""Links, line lengths and lists of files in the documentation."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(
            page
            for folder in ("docs", "docs/log", "deployments", "benchmarks", "sample")
            for page in (ROOT / folder).glob("*.md")
        ),
    ]
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
    broken = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert not broken


DEFINITION = re.compile(r"\[[\w-]+\]: ")  # of a link


def prose(page: Path) -> list[str]:
    """Returns the lines of prose and lists of a page; none of generated pages."""
    if page.parent.name == "benchmarks":
        return []
    lines, in_code = [], False
    for line in page.read_text(encoding="utf-8").splitlines():
        in_code ^= line.lstrip().startswith("```")
        if not in_code and not line.startswith(("|", "#", "```", "    ")) and not DEFINITION.match(line):
            lines.append(line)
    return lines


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_prose_has_at_most_110_characters_a_line(page: Path) -> None:
    too_long = [line for line in prose(page) if len(line) > 110 and " " in line[:110].strip()]
    assert not too_long


def test_the_index_names_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| \[([\w.]+)\]\(\1\)", index, re.MULTILINE)
    assert sorted(named) == sorted(
        page.name for page in (ROOT / "docs").glob("*.md") if page.name != "README.md"
    )


def test_the_tree_of_the_readme_names_every_folder() -> None:
    tree = (ROOT / "README.md").read_text(encoding="utf-8").split("## The tree")[1].split("```")[1]
    named = re.findall(r"^(\w+)/ ", tree, re.MULTILINE)
    with_code = {path.parent.name for path in ROOT.glob("*/*.py")} - {".venv"}
    assert set(named) == with_code | {"docs", "tests"} and len(named) == len(set(named))


def test_the_table_of_stages_is_the_flow() -> None:
    flow = (ROOT / "flows" / "nightly.py").read_text(encoding="utf-8")
    table = (
        (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").split("| stage |")[1].split("\n\n")[0]
    )
    stages = re.findall(r"^\| (\w+) \|", table, re.MULTILINE)
    imported = re.findall(r"^from tasks\.(\w+)\.task import", flow, re.MULTILINE)
    assert sorted(stages) == sorted({*imported, "baselines"})  # which is a task of evaluate


def test_the_files_that_the_architecture_names_exist() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = page.split("## The default run in ten files")[1].split("## Stages")[0]
    files = re.findall(r"^\| `([\w/]+\.py)` \|", section, re.MULTILINE)
    assert len(files) == 10
    assert [file for file in files if not (ROOT / file).is_file()] == []
