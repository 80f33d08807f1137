"""Training objectives. An objective defines how titles form batches, and the loss of a batch."""

from tasks.train.objectives.label import Label
from tasks.train.objectives.leave_one_out import LeaveOneOutHinge, LeaveOneOutSoftmax
from tasks.train.objectives.neighbourhood import Neighbourhood
from tasks.train.objectives.rare_memory import RareMemory

Objective = Label | LeaveOneOutHinge | LeaveOneOutSoftmax | Neighbourhood | RareMemory
