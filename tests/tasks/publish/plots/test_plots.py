"""The figures say what was counted, by hand-made answers; the page holds them all and plotly once."""

import dataclasses

import numpy as np
import plotly.io
import pytest

from storage.formats.clustering import Density
from tasks.publish.plots.held_out_plots import plot_category_accuracy
from tasks.publish.plots.map_plots import (
    plot_cluster_sizes,
    plot_clusters_by_category,
    plot_k_distances,
    plot_neighbours,
)
from tasks.publish.plots.run_plots import plot_loss, render_plots, write_plots


def test_loss():
    figure = plot_loss([0.5, 0.25])
    assert list(figure.data[0].x) == [1, 2]
    assert list(figure.data[0].y) == [0.5, 0.25]


def test_accuracy_of_each_category_with_counts():
    labels = [["news"], ["news"], ["news", "sport"], ["sport"], ["news"]]
    figure = plot_category_accuracy(
        labels, [True, False, True, False, True], ["unseen_title"] * 4 + ["next_period"]
    )
    first, second = figure.data
    assert (first.name, second.name) == ("titles never seen", "what comes next in time")
    assert dict(zip(first.y, first.x)) == pytest.approx({"news": 2 / 3, "sport": 1 / 2})
    assert dict(zip(first.y, first.text)) == {"news": "67% of 3", "sport": "50% of 2"}
    assert (list(second.y), list(second.x)) == (["news"], [1.0])
    assert (first.visible, second.visible) == (True, "legendonly")
    assert list(figure.layout.yaxis.categoryarray) == [
        "sport",
        "news",
    ]  # the axis counts upwards: the largest on top


def test_only_the_largest_categories_are_shown():
    labels = [[f"genre {i}"] for i in range(40) for _ in range(40 - i)]
    figure = plot_category_accuracy(labels, [True] * len(labels), ["unseen_show"] * len(labels))
    assert len(figure.data[0].y) == 25
    assert set(figure.data[0].y) == {f"genre {i}" for i in range(25)}


def test_neighbours_table(plant_map, hostile_titles):
    content = plant_map(60, hostile_titles)
    figure = plot_neighbours(content, sample=8, nearest=3)
    columns = figure.data[0].cells["values"]
    assert list(figure.data[0].header["values"]) == ["title", "nearest 1", "nearest 2", "nearest 3"]
    assert [len(column) for column in columns] == [8] * 4
    row = next(i for i in range(60) if f"<b>{content.titles[i]}</b>" == columns[0][-1])
    nearest = content.neighbours[row, 0]
    assert columns[1][-1].endswith(f" <i>{content.cosines[row, 0]:.2f}</i>")
    assert content.clusters[nearest] in (content.clusters[row], -1)
    aired = [content.airings[i] for i in range(60) if content.clusters[i] == 0]
    top = next(i for i in range(60) if content.clusters[i] == 0 and content.airings[i] == max(aired))
    assert any(content.titles[top] in cell for cell in columns[0])


def test_titles_in_the_table_are_text(plant_map):
    content = plant_map(9, ("<b>bold</b></script>",))
    content = dataclasses.replace(content, airings=[99] + [1] * 8)
    columns = plot_neighbours(content).data[0].cells["values"]
    assert "<b>&lt;b&gt;bold&lt;/b&gt;&lt;/script&gt;</b>" in columns[0]


def test_nothing_to_show_says_so(plant_map):
    for figure, text in (
        (plot_loss([]), "No epoch"),
        (plot_category_accuracy([], [], []), "No held-out"),
        (plot_neighbours(plant_map(0)), "no title"),
    ):
        assert text in figure.layout.annotations[0].text


def test_written_page_and_figures(tmp_path, plant_map, hostile_titles):
    content = plant_map(60, hostile_titles)
    accuracy = plot_category_accuracy([["news"], ["news", "sport"]], [True, False], ["unseen_title"] * 2)
    figures = {
        "loss": plot_loss([1.0]),
        "category_accuracy": accuracy,
        "neighbours": plot_neighbours(content),
    }
    written = write_plots(tmp_path, figures)
    assert sorted(path.relative_to(tmp_path).as_posix() for path in written) == [
        "plots.html",
        *(f"plots/{name}.json" for name in sorted(figures)),
    ]
    page = written[0].read_text(encoding="utf-8")
    assert page.count("plotly.js v") == 1
    assert all(f'id="{name}"' in page for name in figures)
    assert "cdn.plot.ly" not in page.split("</script>")[-2]
    assert max(path.stat().st_size for path in written[1:]) < 40_000
    read = plotly.io.read_json(tmp_path / "plots" / "category_accuracy.json")
    assert dict(zip(read.data[0].y, np.asarray(read.data[0].x))) == {"news": 0.5, "sport": 0.0}


def test_same_figures_same_bytes():
    assert render_plots({"loss": plot_loss([1.0])}) == render_plots({"loss": plot_loss([1.0])})


def test_sizes_categories_and_distances_of_the_planted_clusters(plant_map):
    content = plant_map(100)
    assert plot_cluster_sizes(content).data[0].y == (
        20,
        20,
        20,
        20,
        10,
    )  # every tenth title is noise, all of them of one kind
    heat = plot_clusters_by_category(content).data[0]
    shares = {
        (cluster, category): heat.z[i][j]
        for i, cluster in enumerate(heat.y)
        for j, category in enumerate(heat.x)
    }
    assert shares["football · tonight", "football"] == shares["football · tonight", "sport"] == 1.0
    assert (
        shares["football · tonight", "news"] == 0 < shares["news · tonight", "news"] < 1
    )  # every seventh has no category
    curve = plot_k_distances(content).data[0]
    assert len(curve.y) == 100 and list(curve.y) == sorted(curve.y)
    assert curve.y[-1] == round(1 - float(content.cosines[:, 3].min()), 4)
    dense = plot_k_distances(content, Density(eps=0.25, min_samples=3))
    assert dense.data[0].y[-1] == round(
        1 - float(content.cosines[:, 1].min()), 4
    )  # the second nearest, the title itself being the third sample
    (line,) = dense.layout.shapes
    assert line.y0 == line.y1 == 0.25 and dense.layout.annotations[0].text == "eps 0.25"


def test_plots_of_clusters_without_titles(plant_map):
    for plot in (plot_cluster_sizes, plot_clusters_by_category, plot_k_distances):
        figure = plot(plant_map(0))
        assert len(figure.layout.annotations) == 1
