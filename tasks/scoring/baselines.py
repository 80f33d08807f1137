"""Fits the baselines (simple classifiers of categories) with and without airing context, and scores them."""

import itertools
import time
from collections.abc import Callable, Generator, Iterable, Sequence

import numpy as np

from storage.artifacts import Progress
from storage.formats.baselines import BaselineScores
from tasks.baselines import Baseline
from tasks.baselines.inputs import NoSentenceVectors, TitleInputs
from tasks.baselines.predictions import LabelledTitles
from tasks.baselines.tfidf import FittedTfidfSvm
from tasks.scoring.metrics import judge
from tasks.scoring.protocols import CorpusTitles, HeldOut


def run_baselines(
    titles: CorpusTitles,
    read: Callable[[np.ndarray], TitleInputs],
    baselines: Sequence[Baseline],
    sets: Iterable[HeldOut],
) -> Generator[Progress, None, BaselineScores]:
    """Fits baselines to training titles and scores them on every held-out set; yields progress.

    Only one baseline is in memory at a time, because a linear model of 400,000 features and 150 labels takes
    about 500 MB.

    Args:
        titles: All titles of the corpus.
        read: Function that returns the inputs of the titles with the given row numbers.
        baselines: Baselines to score.
        sets: Held-out sets; those with the same form follow each other. The form is the input of a title:
            title_only (only the title) or title_context (the title and its airing context).

    Returns:
        Scores by (form, protocol of the held-out set), then by name of the baseline.
    """
    scores: dict[tuple[str, str], dict[str, object]] = {}
    training_labels, training_inputs = titles.training_labels, read(titles.training)
    query_inputs: dict[str, TitleInputs] = {}  # by protocol
    total = (1 + bool(training_inputs.contexts)) * len(baselines)
    nonempty_sets = (held_out for held_out in sets if not held_out.reason)
    for form, group in itertools.groupby(nonempty_sets, lambda held_out: held_out.form):
        with_context, form_name, form_sets = form == "title_context", form.replace("_", " "), list(group)
        skipped_baselines: dict[str, dict[str, object]] = {}
        inputs = training_inputs if with_context else training_inputs.without_contexts()
        labelled = LabelledTitles(inputs, training_labels, titles.label_count)
        for step, baseline in enumerate(baselines, 1 + with_context * len(baselines)):
            started, name = time.perf_counter(), baseline.name
            try:
                predictor = baseline.fit(labelled)
            except NoSentenceVectors as error:
                skipped_baselines[name] = {"n": 0, "reason": str(error)}
                yield Progress(step=step, total=total, note=f"{form_name}: {name} skipped: {error}")
                continue
            seconds = time.perf_counter() - started
            solver = f" by {predictor.solver}" if isinstance(predictor, FittedTfidfSvm) else ""
            note = f"{form_name}: {name} fitted to {len(training_labels)} titles in {seconds:.1f} s{solver}"
            yield Progress(step=step, total=total, note=note)
            for held_out in form_sets:
                if held_out.protocol not in query_inputs:
                    query_inputs[held_out.protocol] = read(held_out.queries)
                queries, truth = query_inputs[held_out.protocol], titles.labels.take(held_out.queries)
                predictions = predictor.predict(queries if with_context else queries.without_contexts())
                judgement = judge(predictions, truth, training_labels)
                scores.setdefault((form, held_out.protocol), {})[name] = held_out.resamples.score(judgement)
            del predictor
        for held_out in form_sets:
            scores.setdefault((form, held_out.protocol), {}).update(skipped_baselines)
    return dict(scores)
