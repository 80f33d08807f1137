"""Comparison of nightly runs (nights): drift, model cards and the page of the last thirty nights."""
