"""Defines the settings of the stage train: objective, encoder, table, optimizer and duration."""

from typing import Literal

from tasks.encoder import Bag, Encoder
from tasks.encoder.bag import LAYER
from tasks.form import configurable, setting
from tasks.optimizers import Adam
from tasks.optimizers.parameter_groups import ParameterGroup, UpdateSettings
from tasks.optimizers.schedules import Linear, Schedule, warmed_up_factor
from tasks.pool_settings import AUTOMATIC
from tasks.train.objectives import Label, Objective, RareMemory
from tasks.train.runners import OneProcess, Runner
from tasks.train.tables import ResidentTable, TableSettings


@configurable
class TrainSettings(UpdateSettings):
    """Settings of training: objective, encoder, table, optimizer, schedule and duration."""

    schedule: Schedule = setting(Linear(), "How the learning rate changes during training")
    warm_up: float = setting(0.0, "Share of training in which the learning rate rises from zero", ge=0, lt=1)
    groups: tuple[ParameterGroup, ...] = setting(
        (ParameterGroup(pattern=LAYER, optimizer=Adam(learning_rate=0.01)),),
        "Parameters with a separate optimizer, by name",
    )
    objective: Objective = setting(Label(), "How batches are formed, and their loss")
    encoder: Encoder = setting(Bag(), "How the vector of a title is computed from its tokens")
    table: TableSettings = setting(
        ResidentTable(), "Where embedding rows and their optimizer state are stored"
    )
    runner: Runner = setting(
        OneProcess(), "What performs the steps: this process, or several processes at once"
    )
    backend: Literal["auto", "torch", "compiled"] = setting(
        "auto", "What computes a step: torch, or machine code (label objective, CPU); auto: the faster one"
    )
    dim: int = setting(128, "Dimensions of a vector", title="Dimensions", ge=2, le=4096)
    epochs: int = setting(5, "Epochs; each shows every labelled training title once", ge=1, le=10000)
    initial_std: float = setting(0.1, "Standard deviation of the initial values of rows", gt=0)
    dropout: float = setting(0.4, "Share of title tokens that each epoch omits at random", ge=0, lt=1)
    context_dropout: float = setting(0.5, "Share of titles shown without context tokens", ge=0, le=1)
    patience: int = setting(
        0, "Epochs without a better tuning score after which training ends; 0: no early stopping", ge=0
    )
    tuning_share: float = setting(
        0.05,
        "Share of first words whose titles are held out from training for the tuning score",
        gt=0,
        lt=0.5,
    )
    save_seconds: float = setting(60.0, "Seconds between two checkpoints within an epoch", ge=0)
    precision: Literal["float32", "bfloat16", "auto"] = setting(
        "float32", "Number format of matrix products; auto: bfloat16 on a GPU that supports it"
    )
    seed: int = setting(1, "Seed of all random numbers", ge=0)
    device: str = setting("auto", "Device that computes the steps: auto, cpu, cuda or cuda:N")
    threads: int = setting(
        1, "Number of CPU threads; more than one save little time; 0: torch's default", ge=0
    )
    workers: int = setting(
        AUTOMATIC,
        "Number of processes that load batches; 0: none; -1: chosen by the number of titles",
        ge=AUTOMATIC,
    )

    def __post_init__(self) -> None:
        if (weight := self.encoder.nearest_slot) and not isinstance(self.objective, RareMemory):
            raise ValueError(
                f"train.encoder.nearest_slot is {weight:g} with objective {self.objective.name}; only "
                "rare_memory has slots; set train.objective=rare_memory, or the weight to 0"
            )

    def rate_factor(self, epoch: int, batch: int, batches: int) -> float:
        """Returns the factor on the learning rates in one batch, from the schedule and the warm-up.

        ``epoch`` and ``batch`` count from 0; ``batches`` is the number of batches in the epoch.
        """
        start, end = ((epoch + number / batches) / self.epochs for number in (batch, batch + 1))
        return warmed_up_factor(self.schedule, start, end, self.warm_up)
