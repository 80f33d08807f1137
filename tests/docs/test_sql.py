"""The queries of docs/sql.md, run as they stand there, on the toy world."""

import re
from pathlib import Path

import duckdb
import pytest
from prefect.logging import disable_run_logger

from storage.artifacts import Vectors
from storage.workspace import Workspace
from tests import worlds

PAGE = (Path(__file__).parents[2] / "docs" / "sql.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def database(learnt, tmp_path_factory):
    """The views of the page over a home with a clustering."""
    import numpy as np
    import pyarrow.parquet as pq

    from tasks.augment.lexicon import Lexicon
    from tasks.cluster.settings import ClusterSettings
    from tasks.cluster.task import cluster

    home, guide, _, corpus, _, lexicon = learnt
    raw_titles = pq.read_table(home / corpus.path / "titles.parquet", columns=["raw_title"])["raw_title"].to_pylist()
    with Workspace(home).publishing(Vectors, "sql") as draft:
        np.save(draft.folder / "vectors.npy", Lexicon.open(home / lexicon.path).embed(raw_titles))
    with disable_run_logger():
        clustering = cluster.fn(str(home), corpus, draft.artifact, ClusterSettings())
    views = BLOCKS[0].replace("'artifacts/", f"'{home}/artifacts/")
    for name, artifact in (("GUIDE", guide), ("CORPUS", corpus), ("CLUSTERING", clustering)):
        views = views.replace(f"/{name}/", f"/{Path(artifact.path).name}/")
    with duckdb.connect() as connection:
        connection.execute(views)
        yield connection


def ask(database, number: int, **values: object) -> list[tuple]:
    return database.execute(BLOCKS[number], values or None).fetchall()


def test_tonight_in_the_cluster_of_a_title(database):
    title, category = worlds.titles()[4]
    found = ask(database, 1, title=title, evening=worlds.START)
    assert len(found) > 10 and found == sorted(found)
    kinds = dict(worlds.titles())
    assert sum(kinds[row[2]] == category for row in found) > 0.9 * len(found)
    assert {row[1] for row in found} == {"Channel One"}


def test_neighbours_on_other_channels(database):
    assert ask(database, 2, title=worlds.titles()[0][0]) == []  # the toy world shows every title on both


def test_the_cluster_that_each_channel_shows_most(database):
    found = ask(database, 3)
    assert [row[0] for row in found] == ["Channel One", "Channel Two"] or [row[0] for row in found] == ["Channel One"]
    assert all(row[2] > 10 for row in found)
