"""Compares successive nightly runs: data drift, model cards, and a page with the last thirty runs."""
