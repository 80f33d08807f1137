"""Defines the settings of the stage train, such as objective, encoder, table, optimizer and duration."""

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
    """Settings of a training, such as objective, encoder, table, optimizer, schedule and duration."""

    schedule: Schedule = setting(Linear(), "How the learning rate changes during training")
    warm_up: float = setting(
        0.0, "Share of training in which the learning rate rises from zero; 0: no warm-up", ge=0, lt=1
    )
    groups: tuple[ParameterGroup, ...] = setting(
        (ParameterGroup(pattern=LAYER, optimizer=Adam(learning_rate=0.01)),),
        "Separate optimizers for parameters, which are selected by patterns of names",
    )
    objective: Objective = setting(Label(), "How batches are formed, and which loss is minimized")
    encoder: Encoder = setting(Bag(), "How the vector of a title is computed from its tokens")
    table: TableSettings = setting(
        ResidentTable(), "Where embedding rows and their optimizer state are stored"
    )
    runner: Runner = setting(
        OneProcess(), "Processes that compute the training steps: one, or several at the same time"
    )
    backend: Literal["auto", "torch", "compiled"] = setting(
        "auto",
        "Code of the training step: torch, or compiled (label objective on a CPU); auto: the faster one",
    )
    dim: int = setting(128, "Number of dimensions of a title vector", title="Dimensions", ge=2, le=4096)
    epochs: int = setting(
        5, "Number of epochs; an epoch shows every labelled training title once", ge=1, le=10000
    )
    initial_std: float = setting(0.1, "Standard deviation of the initial embedding rows", gt=0)
    dropout: float = setting(
        0.4, "Share of the tokens of a title, except context tokens, that are omitted at random", ge=0, lt=1
    )
    context_dropout: float = setting(
        0.5, "Share of titles that are shown without context tokens, drawn at random", ge=0, le=1
    )
    patience: int = setting(
        0,
        "Number of epochs without a better tuning score after which training ends; 0: no early stopping",
        ge=0,
    )
    tuning_share: float = setting(
        0.05,
        "Share of first words; titles with these first words are not trained on and give the tuning score",
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
        1, "Number of CPU threads; more than one saves little time; 0: torch's default", ge=0
    )
    workers: int = setting(
        AUTOMATIC,
        "Number of processes that load batches; 0: none; -1: none if the corpus fits in memory, else up to 4",
        ge=AUTOMATIC,
    )

    def __post_init__(self) -> None:
        if (weight := self.encoder.nearest_slot) and not isinstance(self.objective, RareMemory):
            raise ValueError(
                f"train.encoder.nearest_slot is {weight:g} with objective {self.objective.name}; only "
                "rare_memory has slots; set train.objective=rare_memory, or the weight to 0"
            )

    def rate_factor(self, epoch: int, batch: int, batches: int) -> float:
        """Returns the factor by which schedule and warm-up multiply the learning rates of a training step.

        Args:
            epoch: Number of the epoch, from 0.
            batch: Number of the batch in the epoch, from 0.
            batches: Number of batches in the epoch.
        """
        start, end = ((epoch + number / batches) / self.epochs for number in (batch, batch + 1))
        return warmed_up_factor(self.schedule, start, end, self.warm_up)
