"""Toy worlds with known answers, small enough to check by hand; written to disk by the real writers.

``kitchen_stadium_station``: three categories (cookery, football, crime) of titles such as "Harbour kitchen
recipes". The first word is a place that every category uses and says nothing; the other two are words of the
category, and of its own families of words ("goal", "goals", "goalie"), so that

* a title's neighbours should be of its own category,
* a word never seen ("goalpost", "kitchenette") should land near its family.
"""

import datetime
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from storage.artifacts import Checkpoint, Clustering, Corpus, Guide, TitleEncoderFiles, Vectors, Vocabulary
from storage.episodes.numbers import EpisodeNumber
from storage.home.workspace import Workspace
from tasks.augment.distilled import Distilled
from tasks.augment.settings import AugmentSettings
from tasks.cluster.settings import ClusterSettings
from tasks.preprocess.settings import PreprocessSettings
from tasks.tokenize.settings import TokenizeSettings
from tasks.train.checkpoint import write_checkpoint
from tasks.train.loop import Training
from tasks.train.objectives import LeaveOneOutSoftmax
from tasks.train.settings import TrainSettings

WORDS = {
    "cookery": [
        "kitchen",
        "kitchens",
        "kitchenware",
        "baking",
        "baker",
        "bakery",
        "recipe",
        "recipes",
        "cooking",
        "cook",
        "cooks",
        "dinner",
        "dinners",
    ],
    "football": [
        "football",
        "footballer",
        "footballers",
        "goal",
        "goals",
        "goalie",
        "striker",
        "strikers",
        "penalty",
        "penalties",
        "league",
        "leagues",
        "stadium",
    ],
    "crime": [
        "murder",
        "murders",
        "murderer",
        "detective",
        "detectives",
        "inspector",
        "inspectors",
        "suspect",
        "suspects",
        "evidence",
        "verdict",
        "verdicts",
        "robbery",
    ],
}
UNSEEN = {
    "cookery": ["kitchenette", "bakers", "cookery"],
    "football": ["footballing", "goalpost", "leaguer"],
    "crime": ["murderers", "inspection", "suspected"],
}
PLACES = """
Harbour Lisbon Prairie Alpine Coastal Northern Velvet Copper Willow Granite Meadow Island Lantern
Orchard Thunder Crystal Falcon Marble Cedar Amber Desert Canyon Glacier Lagoon Tundra Savanna
Bramble Juniper Saffron Cobalt Ivory Scarlet Hazel Maple Ember Quartz Raven Sparrow Heron Otter
""".split()  # noqa: SIM905
PERSON = pa.struct({"role": pa.string(), "name": pa.string()})
RATING = pa.struct({"system": pa.string(), "value": pa.string()})
DETAILS = {
    "ratings": pa.list_(RATING),
    "credits": pa.list_(PERSON),
    **dict.fromkeys(("countries", "keywords"), pa.list_(pa.string())),
    "original_language": pa.string(),
    "length_minutes": pa.float64(),
    "icon": pa.string(),
}
START = datetime.datetime(2025, 3, 1, 20)
AUGMENTING = AugmentSettings(strategy=Distilled())
TRAINING = TrainSettings(dim=16, epochs=4, threads=1, objective=LeaveOneOutSoftmax(pack=4, packs=24))


def titles(each: int = 90) -> list[tuple[str, str]]:
    """Returns distinct (title, category) pairs, ``each`` of a category."""
    found = {}
    for offset, (category, words) in enumerate(WORDS.items()):
        n = len(words)
        for i in range(each):
            first, second = words[(i * 5 + i // n) % n], words[(i * 7 + 3 + i // (2 * n)) % n]
            if first == second:
                second = words[(words.index(second) + 1) % n]
            found[f"{PLACES[(i + offset * 7) % len(PLACES)]} {first} {second}"] = category
    return list(found.items())


@dataclass(frozen=True)
class Programme:
    """Row of programmes.parquet with the columns that tests use."""

    title: str
    categories: tuple[str, ...] = ()
    start: datetime.datetime = START
    channel: str = "one"
    source: str = "toy"
    language: str | None = "en"
    description: str | None = None
    sub_title: str | None = None
    zone: str = "UTC"


def programmes(each: int = 90) -> list[Programme]:
    """Every toy title twice, within three days; the repeat under an episode mark and on another channel."""
    rows = []
    for number, (title, category) in enumerate(titles(each)):
        start = START + datetime.timedelta(minutes=3 * number)
        rows.append(Programme(title, (category.title(),), start))
        rows.append(
            Programme(
                f"{title} ({number})", (category.upper(),), start + datetime.timedelta(days=3), channel="two"
            )
        )
    return rows


def publish_guide(home: Path, rows: list[Programme]) -> Guide:
    """A Guide folder in the form that the ingest stage publishes."""
    rows = sorted(rows, key=lambda row: (row.source, row.channel, row.start, row.title))
    empty: list[str] = []
    table = pa.table(
        {
            "source": pa.array([row.source for row in rows], pa.string()),
            "channel": pa.array([row.channel for row in rows], pa.string()),
            "start": pa.array([row.start for row in rows], pa.timestamp("us")),
            "stop": pa.array([row.start + datetime.timedelta(hours=1) for row in rows], pa.timestamp("us")),
            "title": pa.array([row.title for row in rows], pa.string()),
            "title_language": pa.array([row.language for row in rows], pa.string()),
            "sub_title": pa.array([row.sub_title for row in rows], pa.string()),
            "categories": pa.array([list(row.categories) for row in rows], pa.list_(pa.string())),
            "episode_numbers": pa.array([empty] * len(rows), pa.list_(pa.string())),
            "episode_systems": pa.array([empty] * len(rows), pa.list_(pa.string())),
            **dict.fromkeys(EpisodeNumber._fields, pa.nulls(len(rows), pa.int32())),
            "date": pa.array([None] * len(rows), pa.string()),
            "zone": pa.array([row.zone for row in rows], pa.string()),
            **dict.fromkeys(("is_new", "is_premiere", "previously_shown"), pa.nulls(len(rows), pa.bool_())),
            **{name: pa.nulls(len(rows), type_) for name, type_ in DETAILS.items()},
        }
    )
    channels = sorted({(row.source, row.channel) for row in rows})
    names = [
        {"source": source, "channel": channel, "name": f"Channel {channel.title()}"}
        for source, channel in channels
    ]
    named = pa.Table.from_pylist(
        names, pa.schema({"source": pa.string(), "channel": pa.string(), "name": pa.string()})
    )
    sources = sorted({row.source for row in rows})
    counts = [sum(row.source == source for row in rows) for source in sources]
    zeros = [0] * len(sources)
    ledger = pa.table(
        {
            "source": pa.array(sources, pa.string()),
            "content_digest": ["0" * 64] * len(sources),
            "seen": counts,
            "stored": counts,
            "duplicates": zeros,
            "rejected": zeros,
        }
    )
    described = Counter((row.title, row.description) for row in rows if row.description)
    descriptions = pa.table(
        {
            "title": pa.array([title for title, _ in described], pa.string()),
            "description": pa.array([text for _, text in described], pa.string()),
            "airings": pa.array(described.values(), pa.int64()),
        }
    )
    with Workspace(home).publishing(Guide, f"toy{len(rows)}") as draft:
        pq.write_table(descriptions, draft.folder / "descriptions.parquet", compression="zstd")
        pq.write_table(table, draft.folder / "programmes.parquet", compression="zstd")
        pq.write_table(named, draft.folder / "channels.parquet", compression="zstd")
        pq.write_table(ledger, draft.folder / "feeds.parquet", compression="zstd")
        draft.counts["programmes"] = len(rows)
    return draft.artifact


def publish_corpus(
    home: Path,
    rows: list[Programme],
    tokenizing: TokenizeSettings | None = None,
    settings: PreprocessSettings | None = None,
) -> tuple[Guide, Vocabulary, Corpus]:
    """Guide, Vocabulary and Corpus by the tasks themselves, without a Prefect run (importing Prefect takes
    two seconds)."""
    from prefect.logging import disable_run_logger

    from tasks.preprocess.task import preprocess
    from tasks.tokenize.task import tokenize

    tokenizing, settings = tokenizing or TokenizeSettings(), settings or PreprocessSettings()
    guide = publish_guide(home, rows)
    with disable_run_logger():
        vocabulary = tokenize.fn(str(home), guide, tokenizing)
        return (
            guide,
            vocabulary,
            preprocess.fn(str(home), guide, vocabulary, tokenizing.splits.salt, settings),
        )


def learn(home: Path, vocabulary: Vocabulary, corpus: Corpus) -> tuple[Checkpoint, TitleEncoderFiles]:
    """Trains on a toy corpus; returns the Checkpoint and the title encoder."""
    from tasks.augment.task import augment

    checkpoint = publish_checkpoint(home, corpus)
    return checkpoint, augment.fn(str(home), vocabulary, corpus, checkpoint, TRAINING.encoder, AUGMENTING)


def publish_clusters(home: Path, corpus: Corpus, vectors: Vectors) -> Clustering:
    """Publishes the nearest titles, and clusters of one seed."""
    from prefect.logging import disable_run_logger

    from tasks.cluster.task import ClusteringInputs, cluster
    from tasks.neighbours.task import find_nearest

    settings = ClusterSettings(seeds=1)
    with disable_run_logger():
        compared = settings.strategy.neighbours, settings.search
        nearest = find_nearest.fn(str(home), corpus, vectors, *compared)
        inputs = ClusteringInputs(corpus=corpus, vectors=vectors, nearest=nearest, settings=settings)
        return cluster.fn(str(home), inputs)


def publish_checkpoint(home: Path, corpus: Corpus) -> Checkpoint:
    """Trains by the loop itself (the task adds Prefect's progress bar, which needs a run)."""
    training = Training(home / corpus.path, TRAINING)
    for _ in training.run():
        pass
    with Workspace(home).publishing(Checkpoint, "toy") as draft:
        write_checkpoint(draft.folder / "checkpoint.safetensors", training.trainer, training.position)
    return draft.artifact


def centred(vectors: np.ndarray) -> np.ndarray:
    """Returns vectors minus their mean, normalized."""
    moved = vectors - vectors.mean(axis=0)
    return moved / np.maximum(np.linalg.norm(moved, axis=1, keepdims=True), 1e-12)
