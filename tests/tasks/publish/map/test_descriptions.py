"""Excerpts of descriptions."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.publish.map.descriptions import MAX_CHARACTERS, read_excerpts


@pytest.fixture
def read(tmp_path):
    """``read(rows, spellings)``: excerpts of three titles; rows are (raw title, description, airings)."""

    def read_(rows, spellings=("News", "Quiz", "Vet")):
        columns = [list(column) for column in zip(*rows, strict=True)]
        described = pa.table(columns, names=["title", "description", "airings"])
        pq.write_table(described, tmp_path / "descriptions.parquet")
        ids = pa.array([min(place, 2) for place in range(len(spellings))], pa.int32())
        pq.write_table(
            pa.table({"raw_title": list(spellings), "title_id": ids}), tmp_path / "variants.parquet"
        )
        excerpts = read_excerpts(tmp_path, tmp_path / "variants.parquet", 3, tmp_path)
        names = ["descriptions.parquet", "variants.parquet"]
        assert sorted(path.name for path in tmp_path.iterdir()) == names
        return excerpts

    return read_


def test_the_most_aired_description_of_all_spellings(read):
    rows = [
        ("Quiz", "Three rounds.", 2),
        ("Vet", "A cow.", 3),
        ("Vet (R)", "A calf.", 2),
        ("VET", "A calf.", 2),
    ]
    assert read(rows, ("News", "Quiz", "Vet", "Vet (R)", "VET")) == ["", "Three rounds.", "A calf."]


@pytest.mark.parametrize(
    ("text", "excerpt"),
    [
        ("a" * MAX_CHARACTERS, "a" * MAX_CHARACTERS),
        ("a" * (MAX_CHARACTERS + 1), "a" * MAX_CHARACTERS + "…"),
        (f"{'word ' * 39}fits. And more", f"{'word ' * 39}fits…"),
        (f"{'word ' * 39}fits, and more", f"{'word ' * 39}fits…"),
        ("<b>Bold</b> & co", "<b>Bold</b> & co"),
    ],
)
def test_long_descriptions_end_after_a_word(read, text, excerpt):
    assert read([("News", text, 1)]) == [excerpt, "", ""]


def test_a_guide_without_descriptions(tmp_path):
    assert read_excerpts(tmp_path, tmp_path / "variants.parquet", 2, tmp_path) == ["", ""]
