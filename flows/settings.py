"""All settings of a nightly run, for the form in the Prefect UI and the command line, and the presets to
start from; benchmarks/nightly.py measures their time and score.
"""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from pydantic import Field

from flows.assignments import override
from tasks.augment.settings import AugmentSettings
from tasks.cluster.settings import ClusterSettings
from tasks.evaluate.settings import EvaluateSettings
from tasks.form import configurable, in_form, setting
from tasks.ingest.settings import IngestSettings
from tasks.preprocess.settings import PreprocessSettings
from tasks.publish.settings import PublishSettings
from tasks.tokenize.settings import TokenizeSettings
from tasks.train.objectives import Label
from tasks.train.settings import TrainSettings

SAMPLE = Path(__file__).resolve().parent.parent / "sample" / "guide.xml.gz"


@configurable
class Settings:
    """Settings of every stage, in their order."""

    ingest: IngestSettings = setting(IngestSettings(), "Reading feeds")
    tokenize: TokenizeSettings = setting(TokenizeSettings(), "Titles to tokens, and what is held out")
    preprocess: PreprocessSettings = setting(PreprocessSettings(), "What a label is")
    train: TrainSettings = setting(TrainSettings(), "What is learnt, how and for how long")
    augment: AugmentSettings = setting(AugmentSettings(), "Vectors for words never seen")
    cluster: ClusterSettings = setting(ClusterSettings(), "Finding groups, without saying how many")
    evaluate: EvaluateSettings = setting(EvaluateSettings(), "Scores and baselines")
    publish: PublishSettings = setting(PublishSettings(), "The map and the gate")


def as_default(settings: Settings) -> Any:
    """Settings as the default of a flow's parameter, with the keys by which the form chooses tabs."""
    return Field(settings, json_schema_extra={"default": in_form(asdict(settings))})


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


def choose(preset: str, assignments: Sequence[str], feeds: Sequence[str]) -> Settings:
    """A preset with what was set; the bundled sample stays out of a space of one's own guides."""
    settings = override(PRESETS[preset], assignments)
    if not feeds or not SAMPLE.exists() or str(SAMPLE) in {str(Path(feed).resolve()) for feed in feeds}:
        return settings
    left_out = (*settings.ingest.leave_out, str(SAMPLE))
    return replace(settings, ingest=replace(settings.ingest, leave_out=left_out))
