"""Defines the settings of all stages. Prefect's Run form and the option ``--set`` change them."""

from tasks.augment.settings import AugmentSettings
from tasks.cluster.settings import ClusterSettings
from tasks.evaluate.settings import EvaluateSettings
from tasks.form import configurable, setting
from tasks.ingest.settings import IngestSettings
from tasks.preprocess.settings import PreprocessSettings
from tasks.publish.settings import PublishSettings
from tasks.tokenize.settings import TokenizeSettings
from tasks.train.settings import TrainSettings


@configurable
class Settings:
    """Settings of all stages, in the order in which the stages run."""

    ingest: IngestSettings = setting(IngestSettings(), "Reading feeds")
    tokenize: TokenizeSettings = setting(
        TokenizeSettings(), "Conversion of titles to tokens, and held-out titles"
    )
    preprocess: PreprocessSettings = setting(PreprocessSettings(), "Categories that become labels")
    train: TrainSettings = setting(TrainSettings(), "Encoder, objective, optimizer and duration of training")
    augment: AugmentSettings = setting(AugmentSettings(), "Vectors of words that are not in training titles")
    cluster: ClusterSettings = setting(ClusterSettings(), "Clusters of similar titles")
    evaluate: EvaluateSettings = setting(EvaluateSettings(), "Scores on held-out titles, and baselines")
    publish: PublishSettings = setting(PublishSettings(), "The map, and promotion of models by the gate")
