"""A synthetic map: five clusters, and titles that try to escape from the page."""

from collections.abc import Callable

import numpy as np
import pytest

from tasks.publish.map.airing_times import AiringTimes
from tasks.publish.map.page import MAX_TIMES, MapContent
from tasks.publish.map.reasons import Reasons

KINDS = ("news", "football", "cooking", "crime drama", "quiz")
HOSTILE = (
    "</script><script>window.broken = 1</script>",
    "<!-- <script>",
    "Quote \" and ' and \\",
    "Line\u2028para\u2029graph",
    "חדשות הערב",
    "🎬 Film 🎞️ Night",
    "Amélie à Paris",
    "{{data}} & {{script}}",
    "<b>bold</b>",
)


def plant(titles: int, hostile: tuple[str, ...] = (), neighbours: int = 5, seed: int = 0) -> MapContent:
    """Makes titles around five centres with nearest neighbours; every tenth is noise, hostile ones first."""
    rng = np.random.default_rng(seed)
    kind = np.arange(titles) % len(KINDS)
    angle = 2 * np.pi * kind / len(KINDS)
    xy = np.clip(
        np.stack([np.cos(angle), np.sin(angle)], axis=1) * 0.7 + rng.normal(0, 0.05, (titles, 2)), -1, 1
    ).astype(np.float32)
    names = list(hostile) + [f"{KINDS[kind[i]].title()} {i}" for i in range(len(hostile), titles)]
    nearest = np.full((titles, neighbours), -1, dtype=np.int32)
    cosines = np.zeros((titles, neighbours), dtype=np.float32)
    for i in range(titles if titles <= 1000 else 0):
        distance = np.linalg.norm(xy - xy[i], axis=1)
        distance[i] = np.inf
        nearest[i] = np.argsort(distance)[:neighbours]
        cosines[i] = 1 - distance[nearest[i]] / 2
    return MapContent(
        heading="Guide of 7 June 2025",
        facts={"Feeds": "UK1", "Score": "64 of 100"},
        titles=names,
        xy=xy,
        categories=[
            [KINDS[k], "sport"] if KINDS[k] == "football" else [KINDS[k]] if i % 7 else []
            for i, k in enumerate(kind)
        ],
        channels=[["BBC One", "ITV"] if i % 2 else [] for i in range(titles)],
        airings=[1 + i % 13 for i in range(titles)],
        clusters=np.where(np.arange(titles) % 10 == 9, -1, kind).astype(np.int32),
        cluster_names=[f"{name} · tonight" for name in KINDS],
        neighbours=nearest,
        cosines=cosines,
        held_out=np.arange(titles) % 4 == 0,
        languages=["en" if i % 3 else "de" for i in range(titles)],
        days=[
            [f"2025-06-0{1 + i % 7}", "2025-06-09"] if i % 2 else [f"2025-06-0{1 + i % 7}"]
            for i in range(titles)
        ],
        reasons=plant_reasons(names, nearest) if titles else None,
        is_new=np.arange(titles) % 20 == 3,
        cluster_categories=["news", "sport", "cooking", "crime drama", None],
        cluster_colours=range(5),
        subclusters=np.full(titles, -1),
        subcluster_names=(),
        subcluster_parents=(),
        times=AiringTimes.from_rows([plant_times(i) for i in range(titles)]),
    )


def plant_times(title: int) -> list[tuple[int, str]]:
    """Makes daily airings from 7 June 2025, 18:00 UTC: one, two or MAX_TIMES."""
    first, days = 29_155_320 + title, (1, 2, MAX_TIMES)[title % 3]
    return [(first + day * 24 * 60, ("BBC One", "ITV")[day % 2]) for day in range(days)]


def plant_reasons(names: list[str], nearest: np.ndarray) -> Reasons:
    """Makes reasons of two neighbours: first words .31, meanings .22, channels -.05."""
    near = nearest[:, :2]
    words = [name.lower().split() for name in names]
    counts, zero = np.array([len(title_words) for title_words in words]), np.zeros_like(near)
    left, right = (
        np.stack([zero + 1, zero, zero + count + 2, zero + count + 3], axis=2) * (near >= 0)[:, :, None]
        for count in (counts[:, None], counts[near])
    )
    share = np.broadcast_to([31, 0, 22, -5], left.shape) * (near >= 0)[:, :, None]
    return Reasons(words, left.astype(np.uint8), right.astype(np.uint8), share.astype(np.int8))


@pytest.fixture(scope="session")
def plant_map() -> Callable[..., MapContent]:
    """``plant_map(titles, hostile=(), neighbours=5)``."""
    return plant


@pytest.fixture(scope="session")
def hostile_titles() -> tuple[str, ...]:
    return HOSTILE
