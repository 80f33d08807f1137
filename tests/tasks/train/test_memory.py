"""The memory compared with a reference trace and with a loop in float64."""

import numpy as np
import pytest
import torch

from tasks.train.memory import EMPTY, AlwaysUpdate, HitOrMiss, Memory, Rule, bank

pytest.importorskip("numba", reason="the memory needs numba")
PLAIN = HitOrMiss(age_noise=0)
RULES = [PLAIN, *(HitOrMiss(policy=own, age_noise=0) for own in ("circular", "averaging")), AlwaysUpdate()]
TRACE = [([1, 0], 7), ([0, 1], 8), ([1, 0.2], 7), ([-1, 0], 9), ([0, -1], 10), ([1, 0], 7)]


def unit(rows) -> torch.Tensor:
    return torch.nn.functional.normalize(torch.as_tensor(rows, dtype=torch.float32), dim=1)


def filled(rows, labels, ages=None) -> Memory:
    memory = Memory.empty(len(rows), len(rows[0]))
    memory.keys.copy_(unit(rows))
    memory.values.copy_(torch.tensor(labels))
    if ages is not None:
        memory.ages.copy_(torch.tensor(ages))
    return memory


def write(memory: Memory, rows, labels, rule: Rule = PLAIN, **options) -> bank.WriteResult:
    return memory.write_(unit(rows), torch.tensor(labels), rule, **options)


def random_batch(count: int, dim: int, labels: int, seed: int, spread: float = 1.0):
    generator = torch.Generator().manual_seed(seed)
    centres = torch.randn(labels, dim, generator=torch.Generator().manual_seed(9))
    own = torch.randint(labels, (count,), generator=generator)
    return unit(centres[own] + spread * torch.randn(count, dim, generator=generator)), own


@pytest.mark.parametrize("batches", [[6], [1] * 6, [2, 4]], ids=str)
def test_the_reference_trace(batches: list[int]):
    memory, begin = Memory.empty(3, 2), 0
    for size in batches:
        rows, labels = zip(*TRACE[begin : begin + size], strict=True)
        write(memory, rows, labels)
        begin += size
        if begin == 4:
            torch.testing.assert_close(memory.keys[0], torch.tensor([0.995133, 0.098538]), atol=1e-6, rtol=0)
    expected = [[0.998783, 0.049329], [0, -1], [-1, 0]]
    torch.testing.assert_close(memory.keys, torch.tensor(expected), atol=1e-6, rtol=0)
    assert memory.values.tolist() == [7, 10, 9] and memory.ages.tolist() == [0, 1, 2]
    assert memory.hits.tolist() == [2, 0, 0] and memory.clock.tolist() == [len(batches), 4]


def reference(memory: Memory, queries, labels, rule: Rule, others, label_count: int):
    """Scans every slot for each query, in float64; changes the memory and returns near and slots."""
    keys, values = memory.keys.double().numpy().copy(), memory.values.numpy().copy()
    ages, replaced = memory.ages.numpy().copy(), int(memory.clock[1])
    start, start_values, near, slots = keys.copy(), values.copy(), [], []

    def nearest(scores, allowed) -> int:
        best = -1
        for slot in np.flatnonzero(allowed):
            if best < 0 or scores[slot] > scores[best]:
                best = int(slot)
        return best

    for query, label, further in zip(queries.double().numpy(), labels.tolist(), others, strict=True):
        scores = start @ query
        negative = np.array(
            [value >= 0 and value != label and value not in further for value in start_values]
        )
        near.append((nearest(scores, start_values == label), nearest(scores, negative)))
        ages += 1
        scores = keys @ query
        slot, own = nearest(scores, values >= 0), nearest(scores, values == label)
        if isinstance(rule, AlwaysUpdate):
            short = (values == label).sum() < max(1, len(keys) // label_count)
            replaces = short and (values < 0).any()
            slot = int(np.flatnonzero(values < 0)[0]) if replaces else own
        elif not (replaces := slot < 0 or values[slot] != label):
            pass
        elif rule.policy == "averaging" and own >= 0 and (values >= 0).all():
            slot, replaces = own, False
        else:
            slot = replaced % len(keys) if rule.policy == "circular" else int(ages.argmax())
        slots.append(slot)
        if slot < 0:
            continue
        if replaces:
            keys[slot], values[slot], replaced = query, label, replaced + 1
        elif np.linalg.norm(keys[slot] + query) > 1e-6:
            keys[slot] = (keys[slot] + query) / np.linalg.norm(keys[slot] + query)
        ages[slot] = 0
    return keys, values, ages, np.array(near), slots


def agrees(
    memory: Memory, queries, labels, rule: Rule, further=None, label_count: int = 8
) -> bank.WriteResult:
    own = further or [[] for _ in labels]
    expected = reference(memory, queries, labels, rule, own, label_count)
    flat = torch.tensor([label for some in own for label in some], dtype=torch.int64)
    offsets = torch.tensor(np.cumsum([0, *map(len, own)]))
    found = memory.write_(queries, labels, rule, other_labels=(offsets, flat), label_count=label_count)
    torch.testing.assert_close(memory.keys, torch.from_numpy(expected[0]).float(), atol=2e-6, rtol=0)
    assert memory.values.tolist() == expected[1].tolist() and memory.ages.tolist() == expected[2].tolist()
    assert torch.stack([found.same_label_slots, found.other_label_slots], 1).tolist() == expected[3].tolist()
    assert found.slots.tolist() == expected[4]
    return found


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.name}-{getattr(rule, 'policy', '')}")
@pytest.mark.parametrize(("slots", "dim"), [(70, 5), (300, 32)])
def test_the_memory_equals_a_loop_in_float64(rule: Rule, slots: int, dim: int):
    memory, kinds = Memory.empty(slots, dim), set()
    for step, spread in enumerate((0.5, 2.0, 8.0)):  # hits, then misses; slots are empty at first
        queries, labels = random_batch(150, dim, 8, step, spread)
        further = [
            [(label + 1) % 8] if number % 3 == 0 else [] for number, label in enumerate(labels.tolist())
        ]
        agrees(memory, queries, labels, rule, further)
        kinds |= set(torch.unique(memory.hits > 0).tolist())
    assert kinds == {False, True} or isinstance(rule, AlwaysUpdate)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.name}-{getattr(rule, 'policy', '')}")
def test_a_batch_equals_single_queries(rule: Rule):
    together, apart = Memory.empty(40, 6), Memory.empty(40, 6)
    for step in range(2):
        queries, labels = random_batch(70, 6, 5, step, 2.0)
        together.write_(queries, labels, rule, label_count=5)
        for query, label in zip(queries, labels, strict=True):
            apart.write_(query[None], label[None], rule, label_count=5)
    for name, own, other in zip(Memory._fields[:4], together, apart, strict=False):
        torch.testing.assert_close(own, other, atol=1e-6, rtol=0, msg=name)


def test_the_lowest_of_equal_slots_is_selected():
    memory = filled([[0, 1], [1, 0], [1, 0], [0, 1]], [3, 3, 3, 4])
    found = agrees(memory, unit([[1, 0], [0, 1]]), torch.tensor([3, 4]), PLAIN)
    assert found.slots.tolist() == [1, 0]  # a hit; a miss, for which slots 0, 2 and 3 are equally old
    assert found.same_label_slots.tolist() == [1, 3] and found.other_label_slots.tolist() == [3, 0]


def test_all_similarities_are_negative():
    memory = filled([[-1, 0], [-1, 0.1], [-1, -0.1]], [2, 5, 2])
    found = agrees(memory, unit([[1, 0]]), torch.tensor([5]), PLAIN)
    assert found.same_label_slots.tolist() == [1] and found.slots.tolist() == [1]


def test_an_empty_slot_is_never_near():
    memory = Memory.empty(4, 2)
    write(memory, [[0, 1]], [0])
    found = write(
        memory, [[0, -1], [1, 0]], [0, 0]
    )  # 0 is a label like any other; an empty key scores 0, too
    assert found.same_label_slots.tolist() == [0, 0] and found.other_label_slots.tolist() == [EMPTY] * 2
    assert found.slots.tolist() == [0, 0] and memory.values.tolist() == [0, EMPTY, EMPTY, EMPTY]


def test_a_query_opposite_to_its_slot_leaves_it():
    memory = filled([[1, 0]], [4], [7])
    write(memory, [[-1, 0]], [4])
    assert memory.keys.tolist() == [[1, 0]] and memory.ages.tolist() == [0]


def test_a_query_without_a_label_is_skipped():
    memory, other = Memory.empty(3, 2), Memory.empty(3, 2)
    write(memory, [[1, 0], [0, 1], [-1, 0]], [1, EMPTY, 2])
    write(other, [[1, 0], [-1, 0]], [1, 2])
    assert all(torch.equal(own, theirs) for own, theirs in zip(memory, other, strict=True))


def test_slots_of_the_titles_other_labels_are_no_negatives():
    memory = filled([[1, 0.1], [1, 1], [0, 1]], [1, 2, 3])
    both = torch.tensor([0, 1]), torch.tensor([1])
    assert write(memory, [[1, 0]], [3], other_labels=both).other_label_slots.tolist() == [1]


def test_age_noise_is_the_batch_numbers_alone_and_within_its_bound():
    runs = []
    for _ in range(2):
        memory, chosen = Memory.empty(60, 4), []
        for step in range(6):
            before = memory.ages.clone()
            queries, labels = random_batch(1, 4, 50, step)
            slot = int(memory.write_(queries, labels + 100 * step, HitOrMiss(age_noise=8)).slots)
            assert before[slot] >= before.max() - 16
            chosen.append(slot)
        runs.append(chosen)
    assert runs[0] == runs[1] != list(range(6))


def test_always_update_divides_the_slots_among_labels():
    memory = Memory.empty(8, 3)
    queries, labels = random_batch(400, 3, 4, 0)
    memory.write_(queries, labels, AlwaysUpdate(), label_count=4)
    assert sorted(memory.values.tolist()) == [0, 0, 1, 1, 2, 2, 3, 3] and int(memory.clock[1]) == 8
    found = write(memory, [[1, 0, 0]], [9], AlwaysUpdate(), label_count=4)
    assert found.slots.tolist() == [EMPTY] and 9 not in memory.values.tolist()


def test_scores_in_float32_find_the_same(monkeypatch: pytest.MonkeyPatch):
    first, second = Memory.empty(130, 16), Memory.empty(130, 16)
    other = not bank._multiplies_bfloat16()
    for step in range(3):
        queries, labels = random_batch(140, 16, 6, step, 1.5)
        first.write_(queries, labels, PLAIN)
        with monkeypatch.context() as context:
            context.setattr(bank, "_multiplies_bfloat16", lambda: other)
            second.write_(queries, labels, PLAIN)
    assert all(torch.equal(own, theirs) for own, theirs in zip(first, second, strict=True))
