"""The scores of the baselines: each is fitted once a form and asked about every held-out set."""

import itertools
import time
from collections.abc import Callable, Generator, Iterable, Sequence

import numpy as np

from storage.artifacts import Progress
from storage.formats.baselines import BaselineScores
from tasks.baselines import Baseline
from tasks.baselines.inputs import NoSentenceVectors, TitleInputs
from tasks.baselines.predictions import LabelledTitles
from tasks.scoring.metrics import judge
from tasks.scoring.protocols import HeldOut, Titles


def ask_baselines(
    titles: Titles,
    read: Callable[[np.ndarray], TitleInputs],
    baselines: Sequence[Baseline],
    sets: Iterable[HeldOut],
) -> Generator[Progress, None, BaselineScores]:
    """Scores baselines on every held-out set; the generator's value is the result.

    ``read`` gives the inputs of some titles, by row; their contexts are used in the form title_context alone.
    One baseline is in memory at a time: a linear one of 400,000 features and 150 labels takes some 500 MB.
    """
    scores: dict[tuple[str, str], dict[str, object]] = {}
    training = titles.labelled("train")
    own, known, asked = titles.labels.take(training), read(training), {}
    total = (1 + bool(known.contexts)) * len(baselines)
    scored = (held for held in sets if not held.reason)
    for form, of_form in itertools.groupby(scored, lambda held: held.form):
        with_context, shown, some = form == "title_context", form.replace("_", " "), list(of_form)
        left_out: dict[str, dict[str, object]] = {}
        labelled = LabelledTitles(known if with_context else known.alone(), own, titles.label_count)
        for step, baseline in enumerate(baselines, 1 + with_context * len(baselines)):
            began, name = time.perf_counter(), baseline.name
            try:
                predictor = baseline.fit(labelled)
            except NoSentenceVectors as missing:
                left_out[name] = {"n": 0, "reason": str(missing)}
                yield Progress(step=step, total=total, note=f"{shown}: {name} left out: {missing}")
                continue
            seconds = time.perf_counter() - began
            note = f"{shown}: {name} fitted on {len(training)} titles in {seconds:.1f} s"
            yield Progress(step=step, total=total, note=note)
            for held in some:
                if held.protocol not in asked:
                    asked[held.protocol] = read(held.queries)
                queries, truth = asked[held.protocol], titles.labels.take(held.queries)
                answer = predictor.predict(queries if with_context else queries.alone())
                judged = judge(answer, truth, own)
                scores.setdefault((form, held.protocol), {})[name] = held.drawn.score(judged)
            del predictor
        for held in some:
            scores.setdefault((form, held.protocol), {}).update(left_out)
    return dict(scores)
