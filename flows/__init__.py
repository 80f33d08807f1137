"""WHAT happens and in which order: Prefect flows, the command line and the servers."""
