"""Settings of the preprocess stage."""

from __future__ import annotations

from dataclasses import dataclass, field

from tasks.form import FORM


@dataclass(frozen=True, kw_only=True)
class PreprocessSettings:
    """What a label is."""

    __pydantic_config__ = FORM
    minimum_titles: int = field(default=20, metadata={"description": "Training titles that a category needs to be a label", "ge": 2})
    largest_share: float = field(default=0.4, metadata={"description": "A category on a larger share of a feed's titles is no label there", "gt": 0, "le": 1})
    category_mapping: str = field(
        default="", metadata={"description": "CSV file with the columns raw,canonical that renames categories (no canonical: drops them); empty is the bundled table"}
    )
    minimum_training_titles: int = field(default=100, metadata={"description": "Labelled training titles below which nothing can be learnt", "ge": 2})
