"""The scores of the baselines: each is fitted once a form and asked about every held-out set."""

import time
from collections.abc import Generator, Iterable, Sequence

from storage.artifacts import Progress
from storage.formats.baselines import BaselineScores
from tasks.baselines import Baseline
from tasks.baselines.inputs import NoSentenceVectors, TitleInputs
from tasks.baselines.predictions import LabelledTitles
from tasks.scoring.metrics import judge
from tasks.scoring.protocols import HeldOut, Titles


def ask_baselines(
    titles: Titles, inputs: TitleInputs, baselines: Sequence[Baseline], sets: Iterable[HeldOut]
) -> Generator[Progress, None, BaselineScores]:
    """Scores baselines on every held-out set; the generator's value is the result.

    ``inputs`` of every title; its contexts are read in the form title_context alone.
    """
    scores: BaselineScores = {}
    training = titles.labelled("train")
    own, known, asked = titles.labels.take(training), inputs.take(training), {}
    total, form, fitted, left_out = (1 + bool(inputs.contexts)) * len(baselines), "", {}, {}
    for held in sets:
        if held.reason:
            continue
        with_context = held.form == "title_context"
        if held.form != form:
            form, shown, fitted, left_out = held.form, held.form.replace("_", " "), {}, {}
            labelled = LabelledTitles(known if with_context else known.alone(), own, titles.label_count)
            for step, baseline in enumerate(baselines, 1 + with_context * len(baselines)):
                began, name = time.perf_counter(), baseline.name
                try:
                    fitted[name] = baseline.fit(labelled)
                    seconds = time.perf_counter() - began
                    note = f"{shown}: {name} fitted on {len(training)} titles in {seconds:.1f} s"
                except NoSentenceVectors as missing:
                    left_out[name] = {"n": 0, "reason": str(missing)}
                    note = f"{shown}: {name} left out: {missing}"
                yield Progress(step=step, total=total, note=note)
        queries = asked.setdefault(held.protocol, inputs.take(held.queries))
        queries, truth = queries if with_context else queries.alone(), titles.labels.take(held.queries)
        answers = {name: judge(predictor.predict(queries), truth, own) for name, predictor in fitted.items()}
        scored = {name: held.drawn.score(judged) for name, judged in answers.items()}
        scores[held.form, held.protocol] = scored | left_out
    return scores
