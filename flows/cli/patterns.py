"""The command ``guidespace patterns``: its arguments, and what it prints."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from typer import Option

from flows.cli.commands import HOME, NONE, AsJson, Home, Set, app, show
from flows.cli.exits import DONE

KEPT = "train nothing: label by the classifier that the home keeps"
Kept = Annotated[bool, Option("--kept", help=KEPT)]

if TYPE_CHECKING:
    from tasks.subtitles.task import PatternCounts


@app.command()
def patterns(home: Home = HOME, changes: Set = NONE, kept: Kept = False, as_json: AsJson = False) -> int:
    """Learn what sub-titles are: dates, guests, teams, numbers."""
    from flows.cli.progress import run_flow
    from flows.overrides import override
    from flows.server import start_prefect
    from storage.home.workspace import Workspace
    from tasks.subtitles.settings import LabellingSettings

    Workspace(home, create=False)
    settings = override(LabellingSettings(), changes).patterns
    folder = str(Workspace(home).home)
    done = run_flow(
        "patterns", home, {"home": folder, "settings": settings, "kept": kept}, start_prefect(home)
    )
    show(asdict(done), as_json, _lines(done))
    return DONE


def _lines(done: "PatternCounts") -> Iterator[str]:
    known = sum(done.counts.values())
    yield f"{known:,} of {done.sub_titles:,} sub-titles have a pattern ({done.seconds:.1f} s):"
    for name, count in done.counts.items():
        shown = "; ".join(done.examples.get(name, ()))
        yield f"{name:<15} {count:7,}, {done.by_rule.get(name, 0):7,} of them by rules   {shown}".rstrip()
    yield "The catalogue has them in the table sub_title_patterns and in the view episodes."
