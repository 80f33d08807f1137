"""Defines the settings of the stage publish."""

from typing import Literal

from tasks.form import configurable, setting


@configurable
class PublishSettings:
    """Settings of the map, and of the decision whether a new model replaces the served model."""

    heading: str = setting("TV guide", "Heading of the map")
    neighbours: int = setting(10, "Number of nearest titles that the map shows for a title", ge=1, le=10)
    keep: int = setting(
        7,
        "Number of newest artifacts of each kind that stay in the home; MLflow has separate copies of models",
        keyed=False,
        ge=1,
    )
    descriptions: bool = setting(
        False,
        "Whether the map shows the beginning of the description of a title; descriptions are protected by "
        "copyright",
    )
    seed: int = setting(0, "Seed of the layout of the map and of the bootstrap of the gate", ge=0)
    promote: Literal["auto", "first", "always", "never"] = setting(
        "auto",
        "When tonight's model becomes the champion: auto: if the gate allows it; first: only if no model was "
        "promoted before; always: whatever the gate decides; never",
        keyed=False,
    )
    registered_model: str = setting(
        "",
        "Name of the registered model in MLflow; empty: guidespace-titles, followed by the id of the home on "
        "an MLflow server. A new name has no champion at first",
        keyed=False,
        pattern=r"^[\w. -]*$",
    )
    resamples: int = setting(1000, "Number of bootstrap resamples for the comparison of models", ge=100)
