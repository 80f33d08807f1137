"""Names of the tags of runs, registered models, model versions and logged models in MLflow."""

HOME_TAG = "guidespace.home"  # id of the home that created the object

# Tags of runs.
FLOW_RUN_ID_TAG = "prefect.flow_run_id"
FLOW_RUN_URL_TAG = "prefect.flow_run_url"
AS_OF_TAG = "guidespace.as_of"  # instant of the guide that the run used: ISO in UTC, which sorts as text
MODEL_VERSION_TAG = "guidespace.model_version"  # number of the model version that the run has registered
CHAMPION_TAG = "guidespace.champion"  # "True" if the registered version was served after the run
GATE_TAG = "guidespace.gate"  # why the registered version was made champion, or why not


class VersionTag:
    """Names of the tags of model versions."""

    DIGEST = "guidespace.model"  # digest of the Model artifact; runs have this tag, too
    CONTENT = "guidespace.content"  # digest of the registered files; versions of older releases lack it
    LINEAGE = "guidespace.lineage"  # id of the held-out sets
    FEEDS = "guidespace.feeds"  # fingerprints of the feeds with which the version was trained
    LOGGED_MODEL = "guidespace.logged_model"  # id of the logged model, which MLflow's SQL store does not save
    QUALITY = "guidespace.score.quality"  # score on held-out titles
    PROMOTED_AT = "guidespace.promoted_at"  # time (ISO, UTC) at which the version became champion
    ROLLED_BACK_AT = "guidespace.rolled_back_at"  # time (ISO, UTC) of the rollback to an earlier version
    REASON = "guidespace.reason"  # why the version was made champion, or why not
    FILES = "guidespace.files"  # REMOVED_FILES if the files of the version were removed


REMOVED_FILES = "removed"  # value of the tag VersionTag.FILES
