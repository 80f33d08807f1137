"""Compares nightly runs (nights): drift, model cards, and a page of the last thirty nights."""
