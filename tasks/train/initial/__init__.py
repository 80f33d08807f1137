"""Where rows stand before the first step: the family of initial rows."""

from tasks.train.initial.pretrained import PretrainedWords
from tasks.train.initial.scattered import Scattered

__all__ = ["Initial", "PretrainedWords", "Scattered"]

Initial = Scattered | PretrainedWords  # smaller sets of fields first: tests/contracts/test_form.py
