"""The command ``enrich`` on a home with a smoke run of the sample guide."""

import gzip
import re
import subprocess
import sys

import pytest

from tests.flows.command import ROOT, SAMPLE, guidespace
from tests.tasks.enrich.guides import programme

pytestmark = pytest.mark.slow

CATEGORIES = re.compile(rb"<category[^>]*>[^<]*</category>")


@pytest.fixture(scope="module")
def gaps(tmp_path_factory):
    """Sample guide without categories on every third channel."""
    content = gzip.decompress(SAMPLE.read_bytes())
    channels = sorted(set(re.findall(rb'<programme [^>]*channel="([^"]*)"', content)))[::3]

    def strip(programme):
        return CATEGORIES.sub(b"", programme[0]) if programme[1] in channels else programme[0]

    file = tmp_path_factory.mktemp("gaps") / "gaps.xml.gz"
    left = re.sub(rb'<programme [^>]*channel="([^"]*)".*?</programme>', strip, content, flags=re.DOTALL)
    file.write_bytes(gzip.compress(left))
    return file, left


def test_categories_are_added_and_other_content_is_unchanged(night, gaps, tmp_path):
    (home, _), (file, content) = night, gaps
    out = tmp_path / "out.xml.gz"
    done = guidespace("enrich", file, out, "--home", home, "--mark")
    assert done.returncode == 0, done.stderr
    written = gzip.decompress(out.read_bytes())
    added = re.compile(rb"\s*<category>[^<]*</category><!-- guidespace [0-9.]+ -->")
    assert added.sub(b"", written) == content and len(added.findall(written)) > 1000
    words = (
        "filled by prediction",
        "filled from the same show",
        "(minimum precision: 0.9)",
        f"The guide: {out}",
    )
    for line in words:
        assert line in done.stdout
    match = re.search(r"held-out shows: precision ([0-9.]+), coverage ([0-9.]+)", done.stdout)
    assert match and float(match[1]) > 0.8 and float(match[2]) > 0.3


def test_standard_input_and_output(night, gaps):
    (home, _), (file, content) = night, gaps
    command = [sys.executable, "-m", "flows", "enrich", "-", "-", "--home", home, "--vocabulary", "etsi"]
    done = subprocess.run(command, input=file.read_bytes(), capture_output=True, cwd=ROOT, timeout=200)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(content[:500]) and b"<category>Movie / Drama</category>" in done.stdout
    assert b"programmes, " in done.stderr and b"standard output" in done.stderr


def test_a_dry_run_writes_nothing_and_shows_examples(night, gaps, tmp_path):
    done = guidespace(
        "enrich", gaps[0], "--dry-run", "--home", night[0], "--min-precision", "0.8", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "lack an episode number" not in done.stdout
    examples = done.stdout.split("Examples of predictions (confidence, title, categories):\n")[1].splitlines()
    assert 0 < len(examples) <= 20 and all(re.match(r"  [01]\.\d\d  .+: .+", line) for line in examples)
    assert not list(tmp_path.iterdir())


def test_an_episode_gets_the_number_of_its_other_airing(night, tmp_path):
    number = '<episode-num system="xmltv_ns">0.4.</episode-num>'
    known, unknown = (programme("Odd", f"<sub-title>The end</sub-title>{more}") for more in (number, ""))
    file, out = tmp_path / "in.xml", tmp_path / "out.xml"
    more = programme("Odd", f"<sub-title>Another</sub-title>{number.replace('4', '5')}")
    file.write_text(f"<tv>{known}{unknown}{more}</tv>", encoding="utf-8")
    done = guidespace("enrich", file, out, "--home", night[0], "--episodes", "--min-precision", "1")
    assert done.returncode == 0, done.stderr
    assert "1 programmes with a sub-title lack an episode number; 1 of them got" in done.stdout
    assert out.read_text(encoding="utf-8").count(number) == 2


def test_a_damaged_guide_is_written_up_to_the_damage_and_reported(night, gaps, tmp_path):
    cut = tmp_path / "cut.xml.gz"
    cut.write_bytes(gaps[0].read_bytes()[:-20_000])
    done = guidespace("enrich", cut, tmp_path / "out.xml", "--home", night[0])
    assert done.returncode == 3 and "damaged" in done.stdout
    assert (tmp_path / "out.xml").read_bytes().startswith(gaps[1][:500])


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["{guide}"], "OUT is missing"),
        (["nowhere.xml", "out.xml"], "no such file"),
        (["{guide}", "nowhere/out.xml"], "does not exist: create it"),
        (["{guide}", "out.xml", "--vocabulary", "nowhere.csv"], "expected own, etsi, or a CSV file"),
        (["{guide}", "out.xml", "--min-precision", "90"], "above 0, at most 1"),
        (["{guide}", "out.xml", "--min-precision", "film=nan"], "above 0, at most 1"),
        (["{guide}", "out.xml", "--min-precision", "movie=0.99"], "unknown kind 'movie'; expected one of"),
        (["{guide}", "out.xml", "--min-precision", "film:0.99"], "or a kind and a number such as film=0.99"),
        (["{guide}", "out.xml", "--all"], "name another vocabulary"),
        (["{guide}", "out.xml", "--home", "{empty}"], "no home"),
    ],
)
def test_errors_are_one_line(night, gaps, tmp_path, arguments, problem):
    given = [argument.format(guide=gaps[0], empty=tmp_path / "empty") for argument in arguments]
    home = [] if "--home" in given else ["--home", night[0]]
    done = guidespace("enrich", *given, *home, cwd=tmp_path)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and problem in done.stderr, done.stderr
    assert not list(tmp_path.iterdir())
