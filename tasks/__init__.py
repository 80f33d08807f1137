"""HOW: one folder a stage; in each, task.py is the only file that knows Prefect."""

import os

# Torch's threads wait for the next product by turning round and round; where anything else runs, two of them
# are twenty times slower than one (docs/log).
os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # read when torch is loaded
