"""What a batch is and what is good: the family of objectives (sampler, collate and loss of each in one file)."""

from tasks.train.objectives.label import Label
from tasks.train.objectives.leave_one_out import LeaveOneOutHinge, LeaveOneOutSoftmax

__all__ = ["Label", "LeaveOneOutHinge", "LeaveOneOutSoftmax", "Objective"]

Objective = Label | LeaveOneOutHinge | LeaveOneOutSoftmax  # smaller sets of fields first: tests/contracts/test_form.py
