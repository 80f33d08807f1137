"""Settings of the train stage: objective × encoder × rule, and how long."""

from __future__ import annotations

from dataclasses import dataclass, field

from tasks.form import FORM
from tasks.train.encoders import Bag, Encoder
from tasks.train.objectives import LeaveOneOutSoftmax, Objective
from tasks.train.rules import RowwiseAdagrad, Rule


@dataclass(frozen=True, kw_only=True)
class TrainSettings:
    """What is learnt, how and for how long."""

    __pydantic_config__ = FORM
    rule: Rule = field(default=RowwiseAdagrad(), metadata={"description": "How a row moves, given its gradient and its state"})
    objective: Objective = field(default=LeaveOneOutSoftmax(), metadata={"description": "What a batch is and what is good"})
    encoder: Encoder = field(default=Bag(), metadata={"description": "Tokens to a title's vector"})
    dim: int = field(default=128, metadata={"title": "Dimensions", "description": "Dimensions of a vector", "ge": 2, "le": 4096})
    epochs: int = field(default=6, metadata={"description": "How often every labelled training title is shown", "ge": 1, "le": 10000})
    start: float = field(default=0.1, metadata={"title": "Initial spread", "description": "Standard deviation of the rows at the start", "gt": 0})
    dropout: float = field(default=0.4, metadata={"description": "Share of a title's tokens left out, drawn anew each time", "ge": 0, "lt": 1})
    context_dropout: float = field(default=0.5, metadata={"description": "Share of titles shown without how they air, so that a bare title works too", "ge": 0, "le": 1})
    seed: int = field(default=1, metadata={"description": "Of everything drawn by chance", "ge": 0})
    device: str = field(default="auto", metadata={"description": "auto, cpu, cuda or cuda:N"})
    threads: int = field(default=1, metadata={"description": "CPU threads; 1 loses little on a calm machine and saves much on a busy one; 0 leaves torch's choice", "ge": 0})
    workers: int = field(default=0, metadata={"description": "Processes that load batches; 0 loads in the training process, faster for what fits in memory", "ge": 0})
