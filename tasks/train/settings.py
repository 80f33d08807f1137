"""Settings of the train stage: objective × encoder × table × rule, and how long."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tasks.form import FORM
from tasks.pool import AUTOMATIC
from tasks.preprocess.orders import ByGroup, Order
from tasks.train.clipping import Clipping, NoClipping
from tasks.train.encoders import Bag, Encoder
from tasks.train.objectives import Label, Objective
from tasks.train.optimizer import Group
from tasks.train.rules import RowwiseAdagrad, Rule
from tasks.train.schedules import Linear, Schedule
from tasks.train.tables import Place, ResidentTable
from tasks.train.tuners import AsSet, Tuner


@dataclass(frozen=True, kw_only=True)
class TrainSettings:
    """What is learnt, how and for how long."""

    __pydantic_config__ = FORM
    rule: Rule = field(default=RowwiseAdagrad(), metadata={"description": "How a row moves, given its gradient and its state"})
    schedule: Schedule = field(default=Linear(), metadata={"description": "How the learning rate changes while training goes on"})
    warm_up: float = field(default=0.0, metadata={"description": "Share of training in which the rate rises from zero; below any schedule", "ge": 0, "lt": 1})
    tuner: Tuner = field(default=AsSet(), metadata={"description": "What sets the momentum rule's rate and momentum while training goes on"})
    clipping: Clipping = field(default=NoClipping(), metadata={"description": "What is done to a gradient that is too long"})
    per_row_steps: bool = field(default=False, metadata={"description": "Count a row's own touches in bias corrections, instead of all steps"})
    groups: tuple[Group, ...] = field(default=(), metadata={"description": "Parameters that move under another rule, chosen by a pattern on their names"})
    objective: Objective = field(default=Label(), metadata={"description": "What a batch is and what is good"})
    encoder: Encoder = field(default=Bag(), metadata={"description": "Tokens to a title's vector"})
    table: Place = field(default=ResidentTable(), metadata={"description": "Where rows and their state live"})
    dim: int = field(default=128, metadata={"title": "Dimensions", "description": "Dimensions of a vector", "ge": 2, "le": 4096})
    epochs: int = field(default=5, metadata={"description": "How often every labelled training title is shown", "ge": 1, "le": 10000})
    start: float = field(default=0.1, metadata={"title": "Initial spread", "description": "Standard deviation of the rows at the start", "gt": 0})
    dropout: float = field(default=0.4, metadata={"description": "Share of the tokens of a title itself that are left out, drawn anew each time", "ge": 0, "lt": 1})
    context_dropout: float = field(default=0.5, metadata={"description": "Share of titles shown without how they air, so that a bare title works too", "ge": 0, "le": 1})
    patience: int = field(default=0, metadata={"description": "Epochs without a better score of titles set aside after which training ends; 0 sets none aside", "ge": 0})
    tuning_share: float = field(default=0.05, metadata={"description": "Share of the first words whose titles are set aside for that score", "gt": 0, "lt": 0.5})
    save_seconds: float = field(default=60.0, metadata={"description": "Seconds between checkpoints within an epoch; one is written after every epoch", "ge": 0})
    precision: Literal["float32", "bfloat16", "auto"] = field(default="float32", metadata={"description": "Of matrix products in a step; auto is bfloat16 on a GPU that has it"})
    seed: int = field(default=1, metadata={"description": "Of everything drawn by chance", "ge": 0})
    device: str = field(default="auto", metadata={"description": "auto, cpu, cuda or cuda:N"})
    threads: int = field(default=1, metadata={"description": "CPU threads; 1 loses little on a calm machine and saves much on a busy one; 0 leaves torch's choice", "ge": 0})
    order: Order = field(default=ByGroup(), metadata={"description": "Which titles an epoch shows, and in which company"})
    workers: int = field(
        default=AUTOMATIC,
        metadata={"description": "Processes that load batches; 0 loads in the training process, -1 chooses: 0 for what fits in memory, unless the run is long", "ge": AUTOMATIC},
    )
