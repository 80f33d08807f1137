"""Presets of the settings (measured by benchmarks/nights/nightly.py), and how a run chooses its settings."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from storage.addresses import WITHOUT_SECRETS
from tasks.ingest.sources.headers import CHANGE
from tasks.overrides import override
from tasks.settings import Settings
from tasks.train.objectives import Label
from tasks.train.settings import TrainSettings

SAMPLE = Path(__file__).resolve().parent.parent / "sample" / "guide.xml.gz"


# Any machine with two cores: the sample guide in under a minute, four national guides (160,000 programmes) in
# under three.
LAPTOP = Settings()

# "Does it run here at all": two epochs of 32 dimensions, the plainest settings. It takes no champion's place.
QUICK = replace(LAPTOP.evaluate, resamples=100)
FIRST = replace(LAPTOP.publish, promote="first")
SMOKE = replace(LAPTOP, train=TrainSettings(dim=32, epochs=2), evaluate=QUICK, publish=FIRST)

# One GPU: more dimensions and epochs, large steps.
BIG = TrainSettings(dim=256, epochs=12, device="cuda", precision="auto", objective=Label(batch_size=4096))
GPU = replace(LAPTOP, train=BIG)

PRESETS = {"smoke": SMOKE, "laptop": LAPTOP, "gpu": GPU}
Preset = Literal["laptop", "gpu", "smoke"]
# Prefect stores parameters: it refuses URLs with secrets where env:NAME or secret:NAME is meant.
Feeds = list[Annotated[str, Field(json_schema_extra={"pattern": WITHOUT_SECRETS})]]
Changes = Sequence[Annotated[str, Field(json_schema_extra={"pattern": CHANGE})]]
NO_CHANGES: tuple[str, ...] = ()


def settle(preset: Preset, changes: Sequence[str], settings: Settings | None) -> Settings:
    """The settings of a run: those given, else the preset's, with changes such as ``train.epochs=5``.

    Raises:
        SettingError: A change names no setting, or its value cannot be.
    """
    return override(PRESETS[preset] if settings is None else settings, changes)


def choose(preset: str, assignments: Sequence[str], feeds: Sequence[str]) -> Settings:
    """A preset with what was set; the bundled sample stays out of a space of one's own guides."""
    settings = override(PRESETS[preset], assignments)
    if not feeds or not SAMPLE.exists() or str(SAMPLE) in {str(Path(feed).resolve()) for feed in feeds}:
        return settings
    left_out = (*settings.ingest.leave_out, str(SAMPLE))
    return replace(settings, ingest=replace(settings.ingest, leave_out=left_out))
