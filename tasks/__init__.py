"""Contains the stages and their libraries, one folder each. Only the task.py of a folder imports Prefect."""

import os

# By default, torch's threads spin while they wait for the next matrix product. If anything else runs on the
# machine, two spinning threads are twenty times slower than one thread (docs/log). OpenMP reads this variable
# when torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
