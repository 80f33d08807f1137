"""Registers all commands of ``guidespace``, in the groups and the order of ``guidespace --help``."""

import importlib.metadata
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from typer import BadParameter, Context, Option, Typer
from typer.core import TyperGroup
from typer.exceptions import Exit

from flows.cli import experiments, explore, guide, guides, home, run, viewers, words
from flows.cli.installation import require_night_packages
from flows.cli.serve import serve
from flows.cli.up import up

COMMANDS: dict[str, tuple[Callable[..., Any], ...]] = {
    "Run": (run.nightly, run.ingest, run.backfill, run.patterns, run.rollback),
    "Explore": (
        explore.similar,
        explore.explain,
        explore.duplicates,
        explore.scores,
        explore.categories,
        explore.status,
        explore.sql,
        explore.export,
    ),
    "Viewers": (viewers.like, viewers.tonight, viewers.forget),
    "Guides": (guides.enrich, guide.guide, guides.correct),
    "Experiments": (experiments.tune, experiments.ablate),
    "Word vectors": (words.ngrams, words.vector, words.neighbours),
    "Home and settings": (home.settings, home.zone, home.gc, home.doctor),
    "Servers": (up, serve),
}
NIGHT_COMMANDS = (  # commands that need the packages of the extra ``night``
    run.nightly,
    run.patterns,
    run.rollback,
    experiments.tune,
    experiments.ablate,
    home.settings,
    home.gc,
    up,
)
NAME_WIDTH = max(len(command.__name__) for group in COMMANDS.values() for command in group)
# Commands that print a line immediately. All other commands print that they are loading.
COMMANDS_WITH_IMMEDIATE_OUTPUT = (
    "nightly",
    "tune",
    "ablate",
    "patterns",
    "ingest",
    "backfill",
    "doctor",
    "serve",
    "up",
    "gc",
)
LOADING_SECONDS = 0.7  # seconds after which a command prints that it is loading


class GroupedHelp(TyperGroup):
    """Typer group whose help lists the commands by groups. Does not need Rich, unlike ``rich_help_panel``."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Writes one section of the help text for each group of COMMANDS."""
        text_width = formatter.width - NAME_WIDTH - 6
        for group, functions in COMMANDS.items():
            names = (function.__name__ for function in functions)
            with formatter.section(group):
                formatter.write_dl(
                    [
                        (f"{name:<{NAME_WIDTH}}", self.commands[name].get_short_help_str(text_width))
                        for name in names
                    ]
                )


app = Typer(add_completion=False, rich_markup_mode=None, cls=GroupedHelp)
for functions in COMMANDS.values():
    for function in functions:
        app.command()(require_night_packages(function) if function in NIGHT_COMMANDS else function)


@app.callback(invoke_without_command=True)
def handle_global_options(context: Context, version: Annotated[bool, Option("--version")] = False) -> None:
    # The docstring is the description of the program in `guidespace --help`.
    """Embeds the programme titles of a TV guide (XMLTV), clusters and scores them, and draws a map."""
    if version:
        print("guidespace", importlib.metadata.version("guidespace"))
        raise Exit
    if not context.invoked_subcommand:
        raise BadParameter("A command is missing.", context)
    context.with_resource(_report_loading(context.invoked_subcommand))


@contextmanager
def _report_loading(subcommand: str) -> Iterator[None]:
    """Prints on a terminal that a command is loading, if this takes longer than LOADING_SECONDS."""
    line = f"guidespace {subcommand}: loading …"
    timer = threading.Timer(LOADING_SECONDS, print, [line], {"file": sys.stderr, "flush": True})
    timer.daemon = True
    if subcommand not in COMMANDS_WITH_IMMEDIATE_OUTPUT and sys.stderr.isatty():
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
