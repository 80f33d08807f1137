"""HOW: one folder a stage; in each, task.py is the only file that knows Prefect."""
