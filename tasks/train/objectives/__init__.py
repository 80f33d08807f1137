"""What a batch is and what is good: the family of objectives (sampler, collate and loss of each in one file)."""

from tasks.train.objectives.leave_one_out import LeaveOneOutHinge, LeaveOneOutSoftmax

__all__ = ["LeaveOneOutHinge", "LeaveOneOutSoftmax", "Objective"]

Objective = LeaveOneOutSoftmax | LeaveOneOutHinge
