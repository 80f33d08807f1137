"""Plots of the map, of training and of past runs, and the page that contains them."""

import dataclasses
import datetime

import numpy as np
import plotly.io

from storage.formats.clustering import Density
from tasks.publish.plots.held_out_plots import plot_category_accuracy
from tasks.publish.plots.map_plots import (
    SAMPLED_TITLES,
    plot_cluster_sizes,
    plot_clusters_by_category,
    plot_k_distances,
    plot_neighbours,
)
from tasks.publish.plots.memory import MAX_LABELS, plot_memory
from tasks.publish.plots.run_plots import (
    MAX_RUNS,
    HistoryPoint,
    extend_history,
    plot_history,
    plot_loss,
    render_plots,
    write_history,
    write_plots,
)
from tasks.publish.plots.topics import plot_topics

AT = datetime.datetime(2025, 6, 7, 4, tzinfo=datetime.UTC)


def test_history_extends_from_page_to_page(tmp_path):
    def scores(precision):
        title = {"n": 9, "knn": {"precision_at_k": precision}}
        forms = {"unseen_title": title, "next_period": {"n": 0, "reason": "none"}}
        return {"protocols": {name: {"title_only": score} for name, score in forms.items()}}

    first = extend_history(None, AT, [{"loss": 2.0}, {"loss": 1.0}], scores(0.4))
    assert first == [HistoryPoint(AT, [2.0, 1.0], {"unseen_title": 0.4})]
    write_history(tmp_path, first)
    both = extend_history(tmp_path, AT + datetime.timedelta(days=1), [{"loss": 1.5}], scores(0.5))
    assert both[0] == first[0] and both[1].precision == {"unseen_title": 0.5}
    write_history(tmp_path, both * MAX_RUNS)
    assert len(extend_history(tmp_path, AT, [], scores(0.5))) == MAX_RUNS
    figure = plot_history(both)
    assert [list(trace.y) for trace in figure.data] == [[2.0, 1.0], [1.5], [0.4, 0.5]]


def test_neighbours_of_the_most_aired_titles(plant_map, hostile_titles):
    content = plant_map(60, hostile_titles)
    columns = plot_neighbours(content).data[0].cells["values"]
    assert [len(column) for column in columns] == [SAMPLED_TITLES] * 6
    row = next(i for i in range(60) if f"<b>{content.titles[i]}</b>" == columns[0][-1])
    assert columns[1][-1].endswith(f" <i>{content.cosines[row, 0]:.2f}</i>")
    members = [i for i in range(60) if content.clusters[i] == 0]
    top = max(members, key=lambda i: (content.airings[i], -i))
    assert any(content.titles[top] in cell for cell in columns[0])


def test_titles_in_the_table_are_escaped(plant_map):
    content = dataclasses.replace(plant_map(9, ("<b>bold</b></script>",)), airings=[99] + [1] * 8)
    columns = plot_neighbours(content).data[0].cells["values"]
    assert "<b>&lt;b&gt;bold&lt;/b&gt;&lt;/script&gt;</b>" in columns[0]


def test_figures_without_data_show_a_message(plant_map):
    of_map = (plot_neighbours, plot_cluster_sizes, plot_clusters_by_category, plot_k_distances)
    figures = [plot(plant_map(0)) for plot in of_map]
    for figure in (
        *figures,
        plot_loss([]),
        plot_history([]),
        plot_memory([]),
        plot_category_accuracy([], [], []),
    ):
        assert figure.layout.annotations[-1].text.endswith(".") and not figure.layout.xaxis.visible


def test_page_and_figures_are_written(tmp_path, plant_map, hostile_titles):
    accuracy = plot_category_accuracy([["news"], ["news", "sport"]], [True, False], ["unseen_title"] * 2)
    figures = {"neighbours": plot_neighbours(plant_map(60, hostile_titles)), "category_accuracy": accuracy}
    write_plots(tmp_path, figures)
    page = (tmp_path / "plots.html").read_text(encoding="utf-8")
    assert page.count("plotly.js v") == 1 and "cdn.plot.ly" not in page.split("</script>")[-2]
    assert all(f'id="{name}"' in page for name in figures)
    read = plotly.io.read_json(tmp_path / "plots" / "category_accuracy.json")
    assert dict(zip(read.data[0].y, np.asarray(read.data[0].x))) == {"news": 0.5, "sport": 0.0}


def test_equal_figures_have_equal_bytes():
    assert render_plots({"loss": plot_loss([1.0])}) == render_plots({"loss": plot_loss([1.0])})


def test_sizes_categories_and_distances_of_clusters(plant_map):
    content = plant_map(100)
    assert plot_cluster_sizes(content).data[0].y == (20, 20, 20, 20, 10)  # every tenth title is noise
    heat = plot_clusters_by_category(content).data[0]
    shares = {
        (cluster, category): heat.z[i][j]
        for i, cluster in enumerate(heat.y)
        for j, category in enumerate(heat.x)
    }
    assert shares["football · tonight", "football"] == shares["football · tonight", "sport"] == 1.0
    assert shares["football · tonight", "news"] == 0 < shares["news · tonight", "news"] < 1
    curve = plot_k_distances(content).data[0]
    assert len(curve.y) == 100 and list(curve.y) == sorted(curve.y)
    assert curve.y[-1] == round(1 - float(content.cosines[:, 3].min()), 4)
    figure = plot_k_distances(content, Density(eps=0.25, min_samples=3))
    assert figure.data[0].y[-1] == round(1 - float(content.cosines[:, 1].min()), 4)
    (line,) = figure.layout.shapes
    assert line.y0 == line.y1 == 0.25


def test_memory_slots_are_boxes_of_the_largest_labels():
    label = {"label": "opera", "slots": 3, "never_hit": 1, "ages": [0, 2, 4, 6, 8]}
    (box,) = plot_memory([label, {**label, "label": "crime"}]).data
    assert box.y == ("opera · 3 (1 never hit)", "crime · 3 (1 never hit)")
    quartiles = (box.lowerfence, box.q1, box.median, box.q3, box.upperfence)
    assert [values[0] for values in quartiles] == [0, 2, 4, 6, 8]
    (box,) = plot_memory([{**label, "label": str(number)} for number in range(MAX_LABELS + 2)]).data
    assert len(box.y) == MAX_LABELS


def test_topics_are_a_table():
    topics = [
        {"topic": 2, "titles": 30, "words": ["kitchen", "bake"], "examples": ["Kitchen Nightmares"]},
        {"topic": 0, "titles": 3, "words": ["goal"], "examples": ["Goal", "Goals!"]},
    ]
    cells = [list(column) for column in plot_topics(topics).data[0].cells.values]
    assert cells == [[2, 0], [30, 3], ["kitchen, bake", "goal"], ["Kitchen Nightmares", "Goal; Goals!"]]
