"""Settings of the publish stage."""

from typing import Literal

from tasks.form import configurable, setting


@configurable
class PublishSettings:
    """Content of the map, and decision and promotion rules of the gate."""

    heading: str = setting("TV guide", "Heading of the map")
    neighbours: int = setting(10, "Neighbours shown of each title", ge=1, le=10)
    keep: int = setting(
        7,
        "Artifacts of each kind that stay in the home, the newest; MLflow keeps its models itself",
        keyed=False,
        ge=1,
    )
    descriptions: bool = setting(
        False,
        "Whether the map's card shows the beginning of a title's description, which belongs to its author",
    )
    seed: int = setting(0, "Of the map's layout and the gate's bootstrap", ge=0)
    promote: Literal["auto", "first", "always", "never"] = setting(
        "auto",
        "Whether tonight's model becomes the champion: as the gate says, only where none was promoted "
        "before, whatever the gate says, or never",
        keyed=False,
    )
    registered_model: str = setting(
        "",
        "Name of the registered model in MLflow; empty is guidespace-titles, on a server followed by the "
        "home's id; a new name starts without a champion",
        keyed=False,
        pattern=r"^[\w. -]*$",
    )
    resamples: int = setting(1000, "Bootstrap resamples of the gate", ge=100)
