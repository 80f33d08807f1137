"""The pages of a night: the map and the plots. Those of a large guide are drawn by the process beside."""

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from storage.arrays import open_array, row_blocks
from storage.artifacts import (
    Checkpoint,
    Clustering,
    Corpus,
    Guide,
    Layout,
    NearestTitles,
    Page,
    Scores,
    Vectors,
)
from storage.catalogue.titles import open_airings
from storage.formats.clustering import Density
from storage.formats.corpus import open_corpus
from storage.workspace import Workspace
from tasks.publish.map.descriptions import read_beginnings
from tasks.publish.map.page import MOST_TIMES, SHOWN, facts_of, map_content, render_map
from tasks.publish.map.places import read_places
from tasks.publish.plots.memory import plot_memory
from tasks.publish.plots.reliability import plot_reliability
from tasks.publish.plots.run_plots import draw_figures, extend_history, write_history, write_plots
from tasks.publish.plots.topics import plot_topics
from tasks.publish.settings import PublishSettings

SURENESS = ("confidence", "score", "correct", "language")


def write_page(
    home: str,
    guide: Guide,
    corpus: Corpus,
    checkpoint: Checkpoint,
    vectors: Vectors,
    nearest: NearestTitles,
    layout: Layout,
    clustering: Clustering,
    scores: Scores,
    settings: PublishSettings,
    previous: Page | None,
    at: datetime,
    folder: Path,
) -> dict[str, int]:
    """Fills the folder of a Page; how many titles and clusters the map has."""
    workspace = Workspace(home)
    of = workspace.folder
    titles = pq.read_table(of(corpus) / "titles.parquet", columns=[*SHOWN, "split", "first_airing"])
    learned, matrix = open_corpus(of(corpus)), np.asarray(open_array(of(vectors), "full"))
    document = json.loads((of(scores) / "scores.json").read_text(encoding="utf-8"))
    queries = pq.read_table(of(scores) / "queries.parquet")
    trained = workspace.details(checkpoint)
    history = extend_history(of(previous) if previous else None, at, trained["history"], document)
    near = workspace.details(clustering)["density"]
    variants = of(corpus) / "variants.parquet"
    with open_airings(of(guide), variants, folder) as airings:
        parts = (airings.times(own.start, own.stop, MOST_TIMES) for own in row_blocks(len(titles)))
        times = pa.concat_tables(parts)  # those of a million titles are more than DuckDB may hold
    told: Sequence[str] = ()
    if settings.descriptions:
        told = read_beginnings(of(guide), variants, len(titles), folder)
    places = read_places(of(layout), of(nearest), settings.neighbours)
    facts = facts_of(titles, document)
    content = map_content(titles, places, of(clustering), facts, settings, times, told)
    density = Density(**near) if near else None
    figures = draw_figures(learned, titles, matrix, queries, content, places.shown, history, density)
    sureness = pq.read_table(of(scores) / "confidence.parquet")
    figures["reliability"] = plot_reliability(*(np.asarray(sureness[name]) for name in SURENESS))
    for name, plot in (("topics", plot_topics), ("memory", plot_memory)):
        if trained.get(name):
            figures[name] = plot(trained[name])
    (folder / "map.html").write_text(render_map(content), encoding="utf-8")
    write_plots(folder, figures)
    write_history(folder, history)
    return {"titles": len(content.titles), "clusters": len(content.cluster_names)}
