"""The comparison of optimizers: each at three sizes, on the same batches, with a few learning rates."""

from dataclasses import dataclass

from prefect import flow

from flows.night import close_crashed, name_run, open_night
from flows.settings import LAPTOP, Settings, as_default
from storage.corrections import labels_by_show, read_corrections
from tasks.ingest.task import ingest
from tasks.preprocess.categories import read_mapping
from tasks.preprocess.task import preprocess
from tasks.tokenize.task import tokenize
from tasks.train.tuning.runs import TuningSettings, entries
from tasks.train.tuning.task import compete, conclude

DEFAULT, EVERYONE = as_default(LAPTOP), TuningSettings()


@dataclass(frozen=True, kw_only=True)
class Compared:
    """Where the result of a comparison is."""

    table: str  # as markdown: the score of the presets' optimizer, then a row an optimizer and size
    run: str  # MLflow run id of the parent
    where: str  # how a person opens that run


@flow(name="tune", flow_run_name=name_run, on_crashed=[close_crashed], on_cancellation=[close_crashed])
def tune(
    feeds: list[str],
    home: str = "guidespace-home",
    settings: Settings = DEFAULT,
    tuning: TuningSettings = EVERYONE,
) -> Compared:
    """Compares all optimizers, and shows which one the presets use and why.

    Args:
        feeds: XMLTV files, globs, folders or http(s) URLs; plain or compressed.
        home: Folder that holds everything a run writes: catalogue, artifacts, MLflow's database.
        settings: Of the stages up to training; the optimizer set there is called the presets'.
        tuning: Which optimizers, at which sizes and rates.
    """
    with open_night(home, feeds, settings) as night:
        guide = ingest(home, feeds, settings.ingest)
        vocabulary = tokenize(home, guide, settings.tokenize)
        salt, mapping = settings.tokenize.splits.salt, read_mapping(settings.preprocess.category_mapping)
        corrections = labels_by_show(read_corrections(night.workspace.home))
        corpus = preprocess(home, guide, vocabulary, salt, settings.preprocess, mapping, corrections)
        courses = [
            compete(home, corpus, entry, size, tuning, night.run)
            for size in tuning.sizes
            for entry in entries(settings.train, tuning)
        ]
        table = conclude(home, courses, settings.train.optimizer.name, night.run)
        return Compared(table=table, run=night.run, where=night.tracking.where(night.run))
