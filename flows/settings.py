"""All settings of a nightly run: the form in the Prefect UI, the flags of the command line. Each stage owns its part."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter, ValidationError

from tasks.augment.settings import AugmentSettings
from tasks.cluster.settings import ClusterSettings
from tasks.evaluate.settings import EvaluateSettings
from tasks.form import FORM
from tasks.ingest.settings import IngestSettings
from tasks.preprocess.settings import PreprocessSettings
from tasks.publish.settings import PublishSettings
from tasks.tokenize.settings import TokenizeSettings
from tasks.train.settings import TrainSettings


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of every stage, in the order of the road."""

    __pydantic_config__ = FORM
    ingest: IngestSettings = field(default=IngestSettings(), metadata={"description": "Reading feeds"})
    tokenize: TokenizeSettings = field(default=TokenizeSettings(), metadata={"description": "Titles to tokens, and what is held out"})
    preprocess: PreprocessSettings = field(default=PreprocessSettings(), metadata={"description": "What a label is"})
    train: TrainSettings = field(default=TrainSettings(), metadata={"description": "What is learnt, how and for how long"})
    augment: AugmentSettings = field(default=AugmentSettings(), metadata={"description": "Vectors for words never seen"})
    cluster: ClusterSettings = field(default=ClusterSettings(), metadata={"description": "Finding groups, without saying how many"})
    evaluate: EvaluateSettings = field(default=EvaluateSettings(), metadata={"description": "Scores and baselines"})
    publish: PublishSettings = field(default=PublishSettings(), metadata={"description": "The map and the gate"})


class SettingError(ValueError):
    """A ``--set`` that cannot be: the message names it and says what can."""


def override(settings: Settings, assignments: Sequence[str]) -> Settings:
    """Settings with some values replaced.

    Args:
        settings: The preset's.
        assignments: ``train.epochs=5``, ``train.rule=adam`` (a strategy by name, its own values at their defaults) or
            ``train.rule.learning_rate=0.01``.

    Raises:
        SettingError: A name that is not there, or a value out of bounds.
    """
    values = dataclasses.asdict(settings)
    for assignment in assignments:
        path, separator, text = assignment.partition("=")
        *parents, last = path.strip().split(".")
        place: Any = values
        for parent in parents:
            place = place.get(parent) if isinstance(place, dict) else None
        if not separator or not isinstance(place, dict) or (last not in place and "name" not in place):
            known = ", ".join(sorted(place)) if isinstance(place, dict) else ", ".join(sorted(values))
            raise SettingError(f"--set {assignment!r}: expected NAME=VALUE such as train.epochs=5; known here: {known}")
        before = place.get(last)
        if isinstance(before, dict) and "name" in before:
            place[last] = {"name": text}
        else:
            place[last] = text if isinstance(before, str) else _value(text)
    try:
        return TypeAdapter(Settings).validate_python(values)
    except ValidationError as error:
        raise SettingError(_explain(error, assignments)) from error


def _value(text: str) -> Any:
    """A JSON value where the text is one (numbers, true, null, lists), else the text itself."""
    try:
        return TypeAdapter(Any).validate_json(text)
    except ValidationError:
        return text


def _explain(error: ValidationError, assignments: Sequence[str]) -> str:
    """One line: the path, what is wrong, what was given; of a union of strategies, only the one that was meant."""
    problems = error.errors()
    other = {problem["loc"][:-1] for problem in problems if problem["type"] == "literal_error" and problem["loc"][-1] == "name"}
    meant = [problem for problem in problems if not any(problem["loc"][: len(place)] == place for place in other)]
    lines = {f"{'.'.join(str(part) for part in problem['loc'])}: {problem['msg']} (got {problem['input']!r})" for problem in meant}
    if not lines:
        known = sorted(str(problem.get("ctx", {}).get("expected")) for problem in problems if problem["type"] == "literal_error")
        lines = {f"{'.'.join(str(part) for part in problems[0]['loc'][:-2])} is {problems[0]['input']!r}; known are {', '.join(known)}"}
    return f"--set {' '.join(assignments)}: " + "; ".join(sorted(lines)[:4])
