"""What the sub-titles of a home are: a classifier learnt from weak rules, its labels in the catalogue."""

from dataclasses import asdict
from typing import Any

from prefect import flow
from pydantic import Field

from flows.ownership import tag_with_home
from flows.run_context import close_crashed
from flows.tracked import open_run
from tasks.form import in_form
from tasks.subtitles.settings import PatternSettings
from tasks.subtitles.task import PatternCounts, find_patterns

# As the default of a flow's parameter, with the keys by which the form chooses tabs (tasks/form.py).
DEFAULT: Any = Field(PatternSettings(), json_schema_extra={"default": in_form(asdict(PatternSettings()))})


@flow(
    name="patterns", on_running=[tag_with_home], on_crashed=[close_crashed], on_cancellation=[close_crashed]
)
def patterns(
    home: str = "guidespace-home", settings: PatternSettings = DEFAULT, kept: bool = False
) -> PatternCounts:
    """Learns the patterns of the catalogue's sub-titles and labels all of them.

    Args:
        home: Folder with a catalogue.
        settings: How the classifier is trained, and when it speaks.
        kept: Train nothing; label by the classifier that the home keeps.
    """
    with open_run(home, "patterns of sub-titles", "patterns of sub-titles", asdict(settings)) as run:
        return find_patterns(home, settings, kept, run)
