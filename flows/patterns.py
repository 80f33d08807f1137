"""Labels the sub-titles of a home by pattern (episode number, date, guests …) and stores the labels.

Rules label a part of the sub-titles. A classifier that is trained on these labels (weak supervision) labels
the other sub-titles.
"""

from dataclasses import asdict
from typing import Any

from prefect import flow
from pydantic import Field

from flows.defaults import DEFAULT_HOME
from flows.run_context import RUN_HOOKS, open_run
from tasks.form import to_form_json
from tasks.subtitles.settings import PatternSettings
from tasks.subtitles.task import PatternCounts, find_patterns

# The JSON default has the keys by which Prefect's Run form selects the tabs of strategies (tasks/form.py).
DEFAULT_SETTINGS: Any = Field(
    PatternSettings(), json_schema_extra={"default": to_form_json(asdict(PatternSettings()))}
)


@flow(name="patterns", **RUN_HOOKS)
def patterns(
    home: str = DEFAULT_HOME, settings: PatternSettings = DEFAULT_SETTINGS, kept: bool = False
) -> PatternCounts:
    """Trains a classifier of sub-titles (episode number, date, guests …) and labels the catalogue with it.

    Args:
        home: Folder of the home, which holds the catalogue.
        settings: Settings for training the classifier, and the confidence that a label needs.
        kept: Do not train a classifier; label with the stored classifier of the home.
    """
    with open_run(home, "patterns of sub-titles", "patterns of sub-titles", asdict(settings)) as run:
        return find_patterns(home, settings, kept, run)
