"""Contains the Prefect flows, the command line and the HTTP servers of GuideSpace."""
