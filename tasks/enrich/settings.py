"""Settings of filling a guide's gaps."""

from tasks.enrich.errors import EnrichError
from tasks.enrich.vocabulary import OWN
from tasks.form import configurable, setting

_VOCABULARY = "Names: own (the guide's), etsi (EN 300 468), or a CSV file with raw and a column a level"
_PRECISION = "Share of predicted categories that shall be right; a higher one fills fewer programmes"


@configurable
class EnrichOptions:
    """What is written."""

    vocabulary: str = setting(OWN, _VOCABULARY)
    every: bool = setting(False, "Also names beside existing categories, so that players know them")
    minimum_precision: float = setting(0.9, _PRECISION, gt=0, le=1)
    mark: bool = setting(False, "A comment behind each element that was added")
    episodes: bool = setting(False, "Also episode numbers where other airings of the same episode have one")

    def __post_init__(self) -> None:
        if not 0 < self.minimum_precision <= 1:
            raise EnrichError(f"the precision is {self.minimum_precision}; expected more than 0, at most 1")
        if self.every and self.vocabulary == OWN:
            raise EnrichError("existing categories are the guide's own; name another vocabulary beside them")
