"""The table of topics."""

from tasks.publish.plots.run_plots import render_plots
from tasks.publish.plots.topics import plot_topics


def test_a_topic_is_a_line_of_words_and_examples():
    topics = [
        {"topic": 2, "titles": 30, "words": ["kitchen", "bake"], "examples": ["Kitchen Nightmares"]},
        {"topic": 0, "titles": 3, "words": ["goal"], "examples": ["Goal", "Goals!"]},
    ]
    figure = plot_topics(topics)
    cells = [list(column) for column in figure.data[0].cells.values]
    assert cells == [[2, 0], [30, 3], ["kitchen, bake", "goal"], ["Kitchen Nightmares", "Goal; Goals!"]]
    assert "kitchen, bake" in render_plots({"topics": figure})
