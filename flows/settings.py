"""Defines the presets of the settings and selects the settings of a run.

benchmarks/nights/nightly.py measures the presets.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from storage.addresses import SECRET_FREE_PATTERN
from tasks.ingest.sources.headers import CHANGE_PATTERN
from tasks.overrides import override
from tasks.settings import Settings
from tasks.train.objectives import Label
from tasks.train.settings import TrainSettings

SAMPLE = Path(__file__).resolve().parent.parent / "sample" / "guide.xml.gz"


# For any machine with two cores: a run takes less than a minute with the sample guide, and less than three
# minutes with four national guides (160,000 programmes).
LAPTOP = Settings()

# A quick check of the installation: two epochs, 32 dimensions. Never replaces a champion.
SMOKE = replace(
    LAPTOP,
    train=TrainSettings(dim=32, epochs=2),
    evaluate=replace(LAPTOP.evaluate, resamples=100),
    publish=replace(LAPTOP.publish, promote="first"),
)

# One GPU: more dimensions and epochs, large batches.
GPU = replace(
    LAPTOP,
    train=TrainSettings(
        dim=256, epochs=12, device="cuda", precision="auto", objective=Label(batch_size=4096)
    ),
)

PRESETS = {"smoke": SMOKE, "laptop": LAPTOP, "gpu": GPU}
Preset = Literal["laptop", "gpu", "smoke"]
# Prefect stores parameters, so the Run form rejects URLs with secrets; users enter env:NAME or secret:NAME.
Feeds = list[Annotated[str, Field(json_schema_extra={"pattern": SECRET_FREE_PATTERN})]]
ModelReference = Annotated[str | None, Field(json_schema_extra={"pattern": SECRET_FREE_PATTERN})]
Changes = Sequence[Annotated[str, Field(json_schema_extra={"pattern": CHANGE_PATTERN})]]
NO_CHANGES: tuple[str, ...] = ()


def resolve_settings(preset: Preset, changes: Sequence[str], settings: Settings | None) -> Settings:
    """Applies changes such as ``train.epochs=5`` to ``settings`` or, if it is None, to the preset.

    Raises:
        SettingError: A change names a setting that does not exist, or its value is invalid.
    """
    return override(PRESETS[preset] if settings is None else settings, changes)


def choose_settings(preset: str, changes: Sequence[str], feeds: Sequence[str]) -> Settings:
    """Applies changes to a preset, and excludes the bundled sample guide unless it is one of the feeds."""
    settings = override(PRESETS[preset], changes)
    if not feeds or not SAMPLE.exists() or str(SAMPLE) in {str(Path(feed).resolve()) for feed in feeds}:
        return settings
    excluded_feeds = (*settings.ingest.leave_out, str(SAMPLE))
    return replace(settings, ingest=replace(settings.ingest, leave_out=excluded_feeds))
