"""All settings of a nightly run: the form in the Prefect UI, the flags of the command line. Each stage owns its part."""

from __future__ import annotations

from dataclasses import dataclass, field

from tasks.augment.settings import AugmentSettings
from tasks.cluster.settings import ClusterSettings
from tasks.evaluate.settings import EvaluateSettings
from tasks.form import FORM
from tasks.ingest.settings import IngestSettings
from tasks.preprocess.settings import PreprocessSettings
from tasks.publish.settings import PublishSettings
from tasks.tokenize.settings import TokenizeSettings
from tasks.train.settings import TrainSettings


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of every stage, in the order of the road."""

    __pydantic_config__ = FORM
    ingest: IngestSettings = field(default=IngestSettings(), metadata={"description": "Reading feeds"})
    tokenize: TokenizeSettings = field(default=TokenizeSettings(), metadata={"description": "Titles to tokens, and what is held out"})
    preprocess: PreprocessSettings = field(default=PreprocessSettings(), metadata={"description": "What a label is"})
    train: TrainSettings = field(default=TrainSettings(), metadata={"description": "What is learnt, how and for how long"})
    augment: AugmentSettings = field(default=AugmentSettings(), metadata={"description": "Vectors for words never seen"})
    cluster: ClusterSettings = field(default=ClusterSettings(), metadata={"description": "Finding groups, without saying how many"})
    evaluate: EvaluateSettings = field(default=EvaluateSettings(), metadata={"description": "Scores and baselines"})
    publish: PublishSettings = field(default=PublishSettings(), metadata={"description": "The map and the gate"})
