"""Settings of all stages, as the Run form in the Prefect UI and ``--set`` change them."""

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
    """Settings of every stage, in their order."""

    ingest: IngestSettings = setting(IngestSettings(), "Reading feeds")
    tokenize: TokenizeSettings = setting(TokenizeSettings(), "Titles to tokens, and what is held out")
    preprocess: PreprocessSettings = setting(PreprocessSettings(), "What a label is")
    train: TrainSettings = setting(TrainSettings(), "What is learnt, how and for how long")
    augment: AugmentSettings = setting(AugmentSettings(), "Vectors for words never seen")
    cluster: ClusterSettings = setting(ClusterSettings(), "Finding groups, without saying how many")
    evaluate: EvaluateSettings = setting(EvaluateSettings(), "Scores and baselines")
    publish: PublishSettings = setting(PublishSettings(), "The map and the gate")
