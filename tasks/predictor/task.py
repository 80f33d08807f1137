"""Defines the Prefect task that trains the linear part of the predictor."""

from prefect import get_run_logger, task

from storage.artifacts import Corpus, LinearModel
from storage.formats.corpus import open_corpus
from storage.home.workspace import Workspace
from storage.stages import Stage
from tasks.predictor.fitting import fit_linear_part

STAGE = Stage(LinearModel, __file__, "linear")


@task(**STAGE.options)
def fit_linear(home: str, corpus: Corpus) -> LinearModel:
    """Trains and publishes the linear part of the predictor. It needs only the Corpus."""
    corpus_files = open_corpus(Workspace(home).folder(corpus))
    part, solver = fit_linear_part(corpus_files)
    with STAGE.publish(home, corpus) as draft:
        part.save(draft.folder)
        weights = {form: len(model.weights) for form, model in part.by_form.items()}
        draft.counts |= {"titles": len(corpus_files.training), "weights": sum(weights.values())}
    get_run_logger().info(
        "linear part trained on %(titles)d titles: %(weights)d weights (solver: %(solver)s)",
        {**draft.counts, "solver": solver},
    )
    return draft.artifact
