"""Claims about speed and quality, each with its rival in the same run."""

import tasks  # noqa: F401  (says how torch's threads wait, before any benchmark loads torch)
