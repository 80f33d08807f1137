"""Measures claims about speed and quality, each beside another system (rival) in the same run."""

import os

# variables of processes; the first is set in processes of rivals
RIVAL, POLICY_IS_OURS = "GUIDESPACE_RIVAL", "GUIDESPACE_OMP_WAIT_POLICY"
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ[POLICY_IS_OURS] = "1"  # processes of benchmarks inherit both variables

import tasks  # noqa: E402, F401  (says how torch's threads wait, before any benchmark loads torch)

if RIVAL in os.environ and POLICY_IS_OURS in os.environ:
    del os.environ["OMP_WAIT_POLICY"]  # before a rival loads torch, scikit-learn or faiss
