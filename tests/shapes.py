"""Types and shapes in signatures, checked while tests run."""

from typing import TypeVar

from beartype import BeartypeConf, beartype
from beartype.roar import BeartypeDecorHintException
from jaxtyping import install_import_hook

T = TypeVar("T")
ROOMS = ["tasks.neighbours", "tasks.encoder", "tasks.scoring", "tasks.cluster", "tasks.train"]
INTEGERS_ARE_FLOATS = beartype(conf=BeartypeConf(is_pep484_tower=True))


def check_shapes() -> None:
    """Installs the import hook for the packages that compute with arrays."""
    install_import_hook(ROOMS, "tests.shapes.checked")


def checked(function: T) -> T:
    """Returns the function with checks of its signature, or unchanged if they are not possible."""
    try:
        return INTEGERS_ARE_FLOATS(function)
    except BeartypeDecorHintException:
        return function
