"""Settings of the publish stage."""

from typing import Literal

from tasks.form import configurable, setting


@configurable
class PublishSettings:
    """Settings of the map, and of the decision whether a new model replaces the served one."""

    heading: str = setting("TV guide", "Heading of the map")
    neighbours: int = setting(10, "Number of neighbours shown per title", ge=1, le=10)
    keep: int = setting(
        7,
        "Number of newest artifacts of each kind to keep in the home; MLflow keeps its own copies of models",
        keyed=False,
        ge=1,
    )
    descriptions: bool = setting(
        False,
        "Whether the map's card shows the beginning of a title's description, which belongs to its author",
    )
    seed: int = setting(0, "Seed of the map's layout and of the gate's bootstrap", ge=0)
    promote: Literal["auto", "first", "always", "never"] = setting(
        "auto",
        "When tonight's model becomes the champion: auto: if the gate allows it; first: only if no model was "
        "promoted before; always: regardless of the gate; never",
        keyed=False,
    )
    registered_model: str = setting(
        "",
        "Name of the registered model in MLflow; empty: guidespace-titles, on a server followed by the "
        "home's id; a new name has no champion at first",
        keyed=False,
        pattern=r"^[\w. -]*$",
    )
    resamples: int = setting(1000, "Bootstrap resamples of the gate", ge=100)
