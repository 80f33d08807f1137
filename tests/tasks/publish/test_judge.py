"""The gate asks both models the same: a model beside itself is neither better nor worse."""

import pytest

from tasks.cluster.settings import ClusterSettings
from tasks.evaluate.settings import EvaluateSettings
from tasks.publish.judge import decide_between, votes_of


@pytest.mark.parametrize("k", [10, 1000])
def test_a_model_is_as_good_as_itself_whatever_number_of_neighbours_votes(learnt, without_run, k):
    from tasks.cluster.task import cluster
    from tasks.embed.task import embed
    from tasks.evaluate.task import evaluate

    home, _, _, corpus, _, lexicon = learnt
    vectors = without_run(embed, str(home), corpus, lexicon)
    clustering = without_run(cluster, str(home), corpus, vectors, ClusterSettings(seeds=1))
    scores = without_run(evaluate, str(home), corpus, vectors, clustering, EvaluateSettings(k=k, baselines=(), resamples=100))
    assert votes_of(home / scores.path) == k
    decision = decide_between(home / corpus.path, home / scores.path, home / lexicon.path, same_model=False, best_of_last=[], seed=0, resamples=100)
    assert decision.difference == 0 and decision.interval == (0, 0)
    assert decision.quality is not None and (decision.quality > 0.9) == (k == 10)  # with all of them voting, the most frequent category wins
