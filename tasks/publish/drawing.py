"""Writes the HTML pages of a nightly run: map.html (a map of all titles) and plots.html."""

import json
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from storage.arrays import row_blocks
from storage.artifacts import Page
from storage.catalogue.connection import temporary_database
from storage.catalogue.titles import Airings
from storage.formats.clustering import Density
from storage.formats.corpus import open_corpus
from storage.formats.programme_kinds import read_title_kinds
from storage.home.workspace import Workspace
from tasks.publish.inputs import PageInputs
from tasks.publish.map.descriptions import read_excerpts
from tasks.publish.map.page import COLUMNS, MAX_TIMES, make_content, make_facts, render_map
from tasks.publish.map.places import read_map_titles
from tasks.publish.plots.memory import plot_memory
from tasks.publish.plots.reliability import plot_reliability
from tasks.publish.plots.run_plots import draw_figures, extend_history, write_history, write_plots
from tasks.publish.plots.topics import plot_topics
from tasks.scoring.confidence import HeldOutPredictions

# Columns of confidence.parquet by field of HeldOutPredictions.
PREDICTION_COLUMNS = {"scores": "score", "correct": "correct", "families": "family", "groups": "language"}


def write_page(
    home: str, inputs: PageInputs, previous: Page | None, now: datetime, folder: Path
) -> dict[str, int]:
    """Writes map.html, plots.html and their data files.

    Args:
        home: Folder of the home.
        inputs: Artifacts and settings of this run.
        previous: Page artifact of the previous run, whose history this run extends; None if there is none.
        now: Time of this run.
        folder: Folder for the files.

    Returns:
        The number of titles on the map ("titles") and the number of clusters ("clusters").
    """
    workspace, settings = Workspace(home), inputs.settings
    folder_of = workspace.folder
    corpus, guide, scores = folder_of(inputs.corpus), folder_of(inputs.guide), folder_of(inputs.scores)
    titles = pq.read_table(corpus / "titles.parquet", columns=[*COLUMNS, "split", "first_airing"])
    titles = titles.append_column("programme_kinds", read_title_kinds(corpus)["programme_kinds"])
    corpus_files = open_corpus(corpus)
    score_document = json.loads((scores / "scores.json").read_text(encoding="utf-8"))
    queries = pq.read_table(scores / "queries.parquet")
    training = workspace.details(inputs.checkpoint)
    previous_page = folder_of(previous) if previous else None
    history = extend_history(previous_page, now, training["history"], score_document)
    variants = corpus / "variants.parquet"
    with temporary_database(folder) as connection:
        airings = Airings(connection, guide, variants)
        # in blocks of titles, because a query for a million titles would exceed the memory limit of DuckDB
        times = pa.concat_tables(
            airings.times(block.start, block.stop, MAX_TIMES) for block in row_blocks(len(titles))
        )
    descriptions = read_excerpts(guide, variants, len(titles), folder) if settings.descriptions else ()
    map_titles = read_map_titles(folder_of(inputs.layout), folder_of(inputs.nearest), settings.neighbours)
    content = make_content(
        titles,
        map_titles,
        clustering=folder_of(inputs.clustering),
        facts=make_facts(titles, score_document),
        settings=settings,
        times=times,
        descriptions=descriptions,
    )
    density = workspace.details(inputs.clustering)["density"]
    figures = draw_figures(
        corpus_files, titles["labels"], queries, content, history, Density(**density) if density else None
    )
    confidence = pq.read_table(scores / "confidence.parquet")
    held_out = HeldOutPredictions(
        **{field: np.asarray(confidence[name]) for field, name in PREDICTION_COLUMNS.items()}
    )
    figures["reliability"] = plot_reliability(np.asarray(confidence["confidence"]), held_out)
    for name, plot in (("topics", plot_topics), ("memory", plot_memory)):
        if training.get(name):
            figures[name] = plot(training[name])
    (folder / "map.html").write_text(render_map(content), encoding="utf-8")
    write_plots(folder, figures)
    write_history(folder, history)
    return {"titles": len(content.titles), "clusters": len(content.cluster_names)}
