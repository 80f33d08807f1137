"""Settings for enriching a guide."""

from tasks.enrich.errors import EnrichError
from tasks.enrich.vocabulary import GUIDE_VOCABULARY
from tasks.form import configurable, setting

_VOCABULARY = (
    "Vocabulary: own (the guide's), etsi (EN 300 468), or a CSV file with raw and a column per level"
)
_PRECISION = "Minimum precision of predictions; a higher precision fills fewer programmes"


@configurable
class EnrichOptions:
    """Selects what is added to a guide."""

    vocabulary: str = setting(GUIDE_VOCABULARY, _VOCABULARY)
    every: bool = setting(
        False,
        "Also add names of the vocabulary to existing categories, for players that know only these names",
    )
    minimum_precision: float = setting(0.9, _PRECISION, gt=0, le=1)
    mark: bool = setting(False, "Add a comment after each added element")
    episodes: bool = setting(False, "Also add episode numbers from other airings of the same episode")

    def __post_init__(self) -> None:
        if not 0 < self.minimum_precision <= 1:
            raise EnrichError(f"the precision is {self.minimum_precision}; expected more than 0, at most 1")
        if self.every and self.vocabulary == GUIDE_VOCABULARY:
            raise EnrichError("existing categories already are the guide's own; name another vocabulary")
