"""What a card shows of a description: the beginning of the most aired one of all a title's spellings."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.publish.map.descriptions import CHARACTERS, read_beginnings


@pytest.fixture
def read(tmp_path):
    """``read(rows, spellings)``: beginnings of three titles; rows are (raw title, description, airings)."""

    def read_(rows, spellings=("News", "Quiz", "Vet")):
        columns = [list(column) for column in zip(*rows, strict=True)]
        described = pa.table(columns, names=["title", "description", "airings"])
        pq.write_table(described, tmp_path / "descriptions.parquet")
        ids = pa.array([min(place, 2) for place in range(len(spellings))], pa.int32())
        pq.write_table(
            pa.table({"raw_title": list(spellings), "title_id": ids}), tmp_path / "variants.parquet"
        )
        found = read_beginnings(tmp_path, tmp_path / "variants.parquet", 3, tmp_path)
        names = ["descriptions.parquet", "variants.parquet"]
        assert sorted(path.name for path in tmp_path.iterdir()) == names
        return found

    return read_


def test_the_most_aired_of_all_spellings(read):
    rows = [
        ("Quiz", "Three rounds.", 2),
        ("Vet", "A cow.", 3),
        ("Vet (R)", "A calf.", 2),
        ("VET", "A calf.", 2),
    ]
    assert read(rows, ("News", "Quiz", "Vet", "Vet (R)", "VET")) == ["", "Three rounds.", "A calf."]


@pytest.mark.parametrize(
    ("text", "beginning"),
    [
        ("a" * CHARACTERS, "a" * CHARACTERS),
        ("a" * (CHARACTERS + 1), "a" * CHARACTERS + "…"),
        (f"{'word ' * 39}fits. And more", f"{'word ' * 39}fits…"),
        (f"{'word ' * 39}fits, and more", f"{'word ' * 39}fits…"),
        ("<b>Bold</b> & co", "<b>Bold</b> & co"),
    ],
)
def test_long_ones_end_after_a_word(read, text, beginning):
    assert read([("News", text, 1)]) == [beginning, "", ""]


def test_a_guide_without_the_file_describes_nothing(tmp_path):
    assert read_beginnings(tmp_path, tmp_path / "variants.parquet", 2, tmp_path) == ["", ""]
