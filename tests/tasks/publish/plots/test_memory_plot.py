"""The plot of the memory's slots."""

from tasks.publish.plots.memory import MOST, plot_memory
from tasks.publish.plots.run_plots import render_plots


def test_a_box_for_each_label_with_its_slots_beside_its_name():
    label = {"label": "opera", "slots": 3, "never_hit": 1, "ages": [0, 2, 4, 6, 8]}
    (box,) = plot_memory([label, {**label, "label": "crime"}]).data
    assert box.y == ("opera · 3 (1 never hit)", "crime · 3 (1 never hit)")
    quartiles = (box.lowerfence, box.q1, box.median, box.q3, box.upperfence)
    assert [own[0] for own in quartiles] == [0, 2, 4, 6, 8]


def test_labels_beyond_the_largest_are_counted_and_an_empty_memory_says_so():
    label = {"label": "opera", "slots": 3, "never_hit": 1, "ages": [0, 2, 4, 6, 8]}
    figure = plot_memory([{**label, "label": str(number)} for number in range(MOST + 2)])
    assert len(figure.data[0].y) == MOST and f"{MOST} labels of {MOST + 2}" in figure.layout.title.text
    assert "No slot is taken." in render_plots({"memory": plot_memory([])})
