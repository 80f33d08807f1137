"""Commands print the examples of README.md, docs/explain.md and docs/tonight.md on the sample guide."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/explain.md", "docs/tonight.md")
README, EXPLAIN, TONIGHT = ((ROOT / name).read_text(encoding="utf-8") for name in PAGES)
SERVED = (ROOT / "deployments" / "title_model.py").read_text(encoding="utf-8")
CLOSE = 0.03  # of a cosine: sums of another machine differ in their last digits, and training carries that on

pytestmark = pytest.mark.slow


def guidespace(*arguments: str) -> str:
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PREFECT_", "MLFLOW_", "GUIDESPACE_"))
    }
    command = [sys.executable, "-m", "flows", *arguments]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        encoding="utf-8",
        timeout=280,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def commands(page: str, name: str) -> list[list[str]]:
    """Returns the arguments of each example of a command on a page, except examples with a placeholder."""
    found = [
        shlex.split(line, comments=True)
        for line in re.findall(rf"^(?:\.venv/bin/)?guidespace ({name} .*)$", page, re.MULTILINE)
    ]
    assert found, f"no example of {name}"
    return found


def printed(page: str, begins: str) -> str:
    """Returns the code block of a page that begins with a text, without its fences."""
    (block,) = [block for block in re.findall(r"```\n(.*?)```", page, re.DOTALL) if re.match(begins, block)]
    return block


def answers(text: str) -> list[tuple[str, float]]:
    """Parses the titles and cosines in the output of `similar`."""
    return [
        (title, float(cosine)) for cosine, title in re.findall(r"^(\d\.\d{3})  (.+?)  ", text, re.MULTILINE)
    ]


def shares(text: str) -> dict[str, float]:
    """Parses the pairs of words in the output of `explain`, and the share of each in the cosine."""
    return {
        pair: float(share) for share, pair in re.findall(r"^  ([+-]\d\.\d{3})  (.*)$", text, re.MULTILINE)
    }


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Home after `make run`."""
    home = str(tmp_path_factory.mktemp("examples") / "home")
    guidespace("nightly", "--feed", "sample/guide.xml.gz", "--home", home, "--preset", "laptop")
    return home


def test_similar_answers_as_the_readme_prints(home: str):
    (example,) = commands(README, "similar")
    told = answers(printed(README, r"\d\.\d{3}  "))
    found = answers(guidespace(*example, "--home", home))
    assert len(told) == 3 and found[0][0] == told[0][0]
    cosines = dict(found[:6])  # from the second on they are .001 apart
    assert {title: cosines[title] for title, _ in told} == pytest.approx(dict(told), abs=CLOSE)


def test_explain_answers_as_its_page_prints(home: str):
    example, of_one = commands(EXPLAIN, "explain")
    voters, found_voters = (
        dict(re.findall(r"^  \d\.\d{3}  (.+?)  +(.*)$", text, re.MULTILINE))
        for text in (printed(EXPLAIN, "“The Graham"), guidespace(*of_one, "--home", home))
    )
    assert len(voters) == 10 and len(voters.items() & found_voters.items()) >= 7
    told, found = printed(EXPLAIN, "“Murder"), guidespace(*example, "--home", home)
    (head, cosine), (found_head, found_cosine) = (
        re.match(r"(.*?): cosine (\d\.\d{3}), number \d", text).groups() for text in (told, found)
    )
    assert head == found_head and float(found_cosine) == pytest.approx(float(cosine), abs=CLOSE)
    pairs, found_pairs = (shares(text) for text in (told, found))
    assert next(iter(pairs)) == next(iter(found_pairs)) == "(meaning)"
    together = {pair: share for pair, share in pairs.items() if share > CLOSE}
    assert {pair: found_pairs[pair] for pair in together} == pytest.approx(together, abs=CLOSE)


def test_tonight_lists_what_its_page_prints(home: str):
    for title in ("Midsomer Murders", "MasterChef"):
        guidespace("like", title, "--home", home)
    told = re.findall(
        r"^\d\d:\d\d  (.+?)  .*\n.*\n       because you like (.+) \(100%\)$", TONIGHT, re.MULTILINE
    )
    found = guidespace("tonight", "--at", "2026-01-14T18:30+00:00", "--home", home)
    assert len(told) == 2
    for title, liked in told:
        assert re.search(rf"  {re.escape(title)}  .*\n.*\n       because you like {liked} \(100%\)", found)


def test_the_example_of_the_served_model_has_the_documented_form(home: str):
    (title,) = set(re.findall(r'"data": \[\["(.*?)"\]\]', SERVED))
    found = json.loads(guidespace("similar", title, "--home", home, "--json"))
    assert all({"cooking", "cuisine", "kochen"} & set(one["categories"]) for one in found[:5])
    assert "Simply Nigella" in [one["title"] for one in found[:3]]
