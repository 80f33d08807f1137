"""The closed form of leave-one-out against a loop that really leaves one out; what an epoch and a batch
are."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.arrays import Ragged
from tasks.train.objectives.leave_one_out import GroupPlan, Groups, LeaveOneOutHinge, LeaveOneOutSoftmax

OBJECTIVES = [pytest.param(choice, id=choice.name) for choice in (LeaveOneOutSoftmax(), LeaveOneOutHinge())]
LeaveOneOut = LeaveOneOutSoftmax | LeaveOneOutHinge
OWN = [0, 0, 0, 1, 1, 2, 2, 2, 2, 3]  # group 3 has one title: no company
FORBIDDEN = [(0, 1), (3, 2), (5, 0), (5, 1), (9, 0)]


def unit_vectors(titles: int = len(OWN), dim: int = 4, seed: int = 0) -> torch.Tensor:
    return torch.nn.functional.normalize(
        torch.randn(titles, dim, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    )


def groups(own: list[int] = OWN, excluded: list[tuple[int, int]] = FORBIDDEN) -> Groups:
    mask = torch.zeros(len(own), max(own) + 1, dtype=torch.bool)
    for title, group in excluded:
        mask[title, group] = True
    return Groups(torch.tensor(own), mask)


def naive(
    objective: LeaveOneOut, vectors: np.ndarray, own: list[int], excluded: set[tuple[int, int]]
) -> float:
    """Computes the loss by the formula, title by title, each removed from its group."""
    losses = []
    for title, group in enumerate(own):
        members = {
            other: [place for place, its in enumerate(own) if its == other and place != title]
            for other in set(own)
        }
        if not members[group]:
            continue
        means = {other: np.mean(vectors[places], axis=0) for other, places in members.items() if places}
        rivals = [other for other in means if other != group and (title, other) not in excluded]
        softmax = isinstance(objective, LeaveOneOutSoftmax)
        scores = {
            other: float(vectors[title] @ means[other]) / (np.linalg.norm(means[other]) if softmax else 1)
            for other in [group, *rivals]
        }
        if isinstance(objective, LeaveOneOutSoftmax):
            parts = {other: math.exp(scores[other] / objective.temperature) for other in [group, *rivals]}
            losses.append(-math.log(parts[group] / sum(parts.values())) * objective.temperature)
        else:
            slack = [objective.margin - scores[group] + scores[other] for other in rivals]
            violated = [value for value in slack if value > 0]
            losses.append(sum(violated) / max(1, len(violated)))
    return float(np.mean(losses)) if losses else 0.0


@settings(max_examples=25)
@given(data=st.data())
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_any_groups(objective: LeaveOneOut, data: st.DataObject):
    count = data.draw(st.integers(1, 5))
    own = data.draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=14))
    own = np.unique(own, return_inverse=True)[1].tolist()  # groups are numbered without gaps
    excluded = {
        pair
        for pair in data.draw(st.sets(st.tuples(st.integers(0, len(own) - 1), st.integers(0, max(own)))))
        if own[pair[0]] != pair[1]
    }
    vectors = unit_vectors(len(own), seed=data.draw(st.integers(0, 99)))
    found = objective.loss(vectors, groups(own, list(excluded)))
    assert found.item() == pytest.approx(naive(objective, vectors.numpy(), own, excluded), abs=1e-9)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_title_without_tokens_has_no_influence(objective: LeaveOneOut):
    """Dropout can take all tokens of a title: its zero vector must not be taken for a unit one."""
    vectors = unit_vectors()
    vectors[1] = 0
    found = objective.loss(vectors, groups())
    assert found.item() == pytest.approx(naive(objective, vectors.numpy(), OWN, set(FORBIDDEN)), abs=1e-9)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_titles_without_others_of_their_category_have_no_loss(objective: LeaveOneOut):
    vectors = unit_vectors(3).requires_grad_()
    loss = objective.loss(vectors, groups([0, 1, 2], []))
    (grad,) = torch.autograd.grad(loss, vectors)
    assert loss.item() == 0 and torch.equal(grad, torch.zeros_like(grad))


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_equal_vectors_are_finite(objective: LeaveOneOut, dtype: torch.dtype):
    vectors = torch.nn.functional.normalize(torch.ones(4, 3, dtype=dtype)).requires_grad_()
    opposite = torch.cat([vectors[:2], -vectors[2:]])  # as groups 0, 1, 0, 1 their sums are zero
    for given_vectors, own in ((vectors, [0, 0, 1, 1]), (opposite, [0, 1, 0, 1])):
        loss = objective.loss(given_vectors, groups(own, []))
        (grad,) = torch.autograd.grad(loss, vectors)
        assert loss.isfinite() and grad.isfinite().all()


def test_a_perfect_space_costs_no_hinge():
    vectors = torch.eye(3, dtype=torch.float64)[[0, 0, 1, 1, 2, 2]]
    assert LeaveOneOutHinge(margin=0.2).loss(vectors, groups([0, 0, 1, 1, 2, 2], [])).item() == 0


# -- what an epoch is
# ---------------------------------------------------------------------------------------------------

LABELS = Ragged.from_rows(
    [[number % 5] if number % 3 else [number % 5, 5 + number % 2] for number in range(203)] + [[]]
)
ROWS = np.arange(203)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_labelled_title_is_shown_once_an_epoch(objective: LeaveOneOut):
    plans = replace(objective, pack=4, packs=7).plan_epoch(ROWS[::2], LABELS, np.random.default_rng(1))
    shown = np.concatenate([plan.title_ids for plan in plans])
    assert sorted(shown.tolist()) == ROWS[::2].tolist()
    for plan in plans:
        assert len(plan.title_ids) <= 4 * 7 and len(plan.title_ids) == len(plan.drawn_labels)
        assert all(label in LABELS[row] for row, label in zip(plan.title_ids, plan.drawn_labels, strict=True))


def test_every_label_of_a_title_gets_its_turn():
    seen = set()
    for seed in range(30):
        for plan in LeaveOneOutSoftmax().plan_epoch(ROWS, LABELS, np.random.default_rng(seed)):
            seen |= {
                int(label) for row, label in zip(plan.title_ids, plan.drawn_labels, strict=True) if row == 3
            }
    assert seen == set(LABELS[3].tolist()) == {3, 6}


def test_collate_forbids_the_labels_a_title_carries_too():
    labels = Ragged.from_rows([[0, 2], [0], [1, 2], [2], [2, 0], [1]])
    plan = GroupPlan(np.array([0, 1, 3, 4, 5]), np.array([0, 0, 2, 2, 1], dtype=np.int32))
    found = LeaveOneOutSoftmax().collate(plan, labels, np.zeros(len(plan.title_ids), dtype=bool))
    assert found.group_ids.tolist() == [0, 0, 2, 2, 1]  # groups in the order of their labels
    assert found.excluded.tolist() == [
        [False, False, True],
        [False] * 3,
        [False] * 3,
        [True, False, False],
        [False] * 3,
    ]


def test_collate_ignores_labels_without_a_group():
    labels = Ragged.from_rows([[3, 9], [3]])
    found = LeaveOneOutSoftmax().collate(
        GroupPlan(np.array([0, 1]), np.array([3, 3], dtype=np.int32)), labels, np.zeros(2, dtype=bool)
    )
    assert found.group_ids.tolist() == [0, 0] and not found.excluded.any()


def test_half_precision_of_the_encoder_leaves_scores_in_float32():
    vectors = torch.nn.functional.normalize(torch.randn(64, 32, generator=torch.Generator().manual_seed(1)))
    batch = groups([title % 20 for title in range(64)], [])
    for unit_means in (True, False):
        expected, _ = LeaveOneOutSoftmax.scores(vectors, batch, unit_means=unit_means)
        with torch.autocast("cpu", torch.bfloat16):
            found, _ = LeaveOneOutSoftmax.scores(vectors, batch, unit_means=unit_means)
        assert found.dtype == torch.float32 and torch.equal(found, expected)


@pytest.mark.gpu
def test_a_gpu_adds_in_the_same_order_every_time():
    """Thousands of titles in three groups: sums by atomics differ from one call to the next."""
    vectors = torch.nn.functional.normalize(
        torch.randn(4096, 64, generator=torch.Generator().manual_seed(1))
    ).cuda()
    batch = Groups(*(tensor.cuda() for tensor in groups([title % 3 for title in range(4096)], [])))
    found = []
    for _ in range(10):
        leaf = vectors.clone().requires_grad_()
        loss = LeaveOneOutSoftmax().loss(leaf, batch)
        found.append((loss.detach(), *torch.autograd.grad(loss, leaf)))
    assert all(torch.equal(loss, found[0][0]) and torch.equal(grad, found[0][1]) for loss, grad in found)
