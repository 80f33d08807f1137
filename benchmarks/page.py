"""Generates the sections of ``README.md`` from the history, and finds benchmarks that have changed."""

import ast
import subprocess
from collections.abc import Sequence
from pathlib import Path

from benchmarks.claims import ROOT, Claim, table
from benchmarks.history import Measurement, latest

PAGE = Path(__file__).with_name("README.md")
MODULES = {
    name: f"benchmarks.{folder}.{name}"
    for folder, names in {
        "ingest": ("enrich", "ingest"),
        "linear": ("factorisation", "linear"),
        "nights": (
            "changed",
            "distributed",
            "first_run",
            "kills",
            "million",
            "nightly",
            "orchestration",
            "serve",
        ),
        "objectives": ("objectives",),
        "offload": ("eviction", "offload", "rivals"),
        "players": ("guide", "kinds", "players"),
        "quality": ("blind", "hidden", "quality"),
        "recommend": ("recommend",),
        "search": ("clusters", "layout", "neighbours"),
        "text": ("fasttext_reader", "oov", "sentences", "text", "titles"),
        "training": ("bag", "loader", "roofline", "runners", "training"),
    }.items()
    for name in names
}
ON_GPU = {"on_gpu": "benchmarks.on_gpu"}  # sections "on_gpu, PART" are added by benchmarks.record_gpu
SUFFIX = ", full sizes"  # of sections with the heavy sizes of a benchmark
BEGIN, END = "<!-- measured -->", "<!-- end -->"


def about(name: str) -> str:
    """Returns the docstring of a benchmark."""
    source = _file((MODULES | ON_GPU)[name]).read_text(encoding="utf-8")
    return ast.get_docstring(ast.parse(source)) or ""


def anchor(section: str) -> str:
    """Returns the anchor of a section."""
    return section.lower().replace(",", "").replace(" ", "-")


def render(text: str, history: Sequence[Measurement]) -> str:
    """Replaces everything between the comments of a page by the sections; returns the page.

    Args:
        text: The page.
        history: Measurements, oldest first. The newest of each section is shown; older ones count for the
            column ``met``.
    """
    before, _, rest = text.partition(BEGIN)
    shown = MODULES | ON_GPU
    sections = {name: one for name, one in latest(history).items() if _benchmark(name) in shown}
    missing = [name for name in sorted(MODULES) if not {name, name + SUFFIX} & sections.keys()]
    parts = [_section(sections[name], history) for name in sorted(sections)]
    if missing:
        first = {name: about(name).partition("\n\n")[0].replace("\n", " ") for name in missing}
        parts.append(
            "### Not measured yet\n\n"
            + "\n".join(f'- <a id="{name}"></a>`{name}`: {first[name]}' for name in missing)
        )
    return f"{before}{BEGIN}\n\n" + "\n\n".join(parts) + f"\n\n{END}{rest.partition(END)[2]}"


def _section(measured: Measurement, history: Sequence[Measurement]) -> str:
    facts = [f"{measured.minutes:.1f} min"] if measured.minutes is not None else []
    if measured.load is not None:
        facts.append(f"load average {measured.load:.1f} at the start")
    line = f"{measured.date}, commit {measured.commit}, {measured.machine}"
    runs = [each for each in history if each.section == measured.section]
    verdicts = [_verdict(claim, runs) for claim in measured.claims]
    text = about(_benchmark(measured.section))
    if _benchmark(measured.section) != measured.section:  # the full text is in the section without suffix
        text = text.partition("\n\n")[0]
    when = f"{'; '.join(filter(None, [line, ', '.join(facts)]))}."
    return "\n\n".join([f"### {measured.section}", text, when, table(measured.claims, verdicts)])


def _benchmark(section: str) -> str:
    """Returns the name of the benchmark of a section, "bag" for "bag, full sizes"."""
    return section.partition(", ")[0]


def _verdict(claim: Claim, runs: Sequence[Measurement]) -> str:
    """Returns the verdict; if runs differ, also how many of all runs with this target have the same."""
    key = claim.name, claim.rival, claim.aim, claim.better
    verdicts = [
        other.verdict
        for run in runs
        for other in run.claims
        if (other.name, other.rival, other.aim, other.better) == key
    ]
    same = verdicts.count(claim.verdict)
    return (claim.verdict or "–") + (f" ({same} of {len(verdicts)} runs)" if same < len(verdicts) else "")


def outdated(history: Sequence[Measurement]) -> dict[str, str]:
    """Returns the commits of sections whose benchmark has changed since they were measured, by section."""
    changed = {}
    for name, measured in sorted(latest(history).items()):
        if (module := MODULES.get(_benchmark(name))) is None:
            continue
        command = ["git", "diff", "--quiet", measured.commit, "--", *sorted(_sources(module))]
        if subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode:
            changed[name] = measured.commit
    return changed


def _sources(module: str) -> set[str]:
    """Returns the files of a benchmark: its module and what it imports of its folder, recursively."""
    files: set[str] = set()
    pending = {module}
    while pending:
        file = _file(pending.pop())
        if (path := file.relative_to(ROOT).as_posix()) in files:
            continue
        files.add(path)
        names: set[str] = set()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        folder = module.rpartition(".")[0] + "."
        pending |= {name for name in names if name.startswith(folder) and _file(name).is_file()}
    return files


def _file(module: str) -> Path:
    return (ROOT / module.replace(".", "/")).with_suffix(".py")


def update(file: Path, history: Sequence[Measurement]) -> None:
    """Writes the sections of a page."""
    file.write_text(render(file.read_text(encoding="utf-8"), history), encoding="utf-8")
