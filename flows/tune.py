"""The comparison of rules: every optimizer at three sizes, on the same batches, with a few learning rates."""

from __future__ import annotations

from dataclasses import dataclass

from prefect import flow

from flows.night import close_crashed, name_run, open_night
from flows.presets import LAPTOP
from flows.settings import Settings
from tasks.contest.courses import entries
from tasks.contest.settings import ContestSettings
from tasks.contest.task import compete, conclude
from tasks.ingest.task import ingest
from tasks.preprocess.categories import read_mapping
from tasks.preprocess.task import preprocess
from tasks.tokenize.task import tokenize

EVERYONE = ContestSettings()


@dataclass(frozen=True, kw_only=True)
class Compared:
    """Where the result of a comparison is.

    Attributes:
        table: For people, as markdown: the sentence about the presets' rule, then a row a rule and size.
        run: MLflow run id of the parent.
        where: How a person opens that run.
    """

    table: str
    run: str
    where: str


@flow(name="tune", flow_run_name=name_run, on_crashed=[close_crashed], on_cancellation=[close_crashed])
def tune(feeds: list[str], home: str = "guidespace-home", settings: Settings = LAPTOP, contest: ContestSettings = EVERYONE) -> Compared:
    """Compares all rules and says which one the presets use, and why.

    Args:
        feeds: XMLTV files, globs, folders or http(s) URLs; plain or compressed.
        home: Folder that holds everything a run writes: catalogue, artifacts, MLflow's database.
        settings: Of the stages up to training, and of training; the rule set there is called the presets'.
        contest: Who takes part, at which sizes and rates.
    """
    with open_night(home, feeds, settings) as night:
        guide = ingest(home, feeds, settings.ingest)
        vocabulary = tokenize(home, guide, settings.tokenize)
        corpus = preprocess(home, guide, vocabulary, settings.tokenize, settings.preprocess, read_mapping(settings.preprocess.category_mapping))
        courses = [compete(home, corpus, entry, size, contest, night.run) for size in contest.sizes for entry in entries(settings.train, contest)]
        return Compared(table=conclude(home, courses, settings.train.rule.name, night.run), run=night.run, where=night.tracking.where(night.run))
