"""XMLTV that is broken, cut or badly encoded: what of it is read, and what is said of the rest."""

from pathlib import Path

import pytest
from guides import SOUND, guide, only, read, real_data, rows

from tasks.ingest.sources.feeds import FeedError


@pytest.mark.parametrize(
    ("broken", "stored", "reasons"),
    [
        (
            '<programme channel="one" start="20250301200000"><title>Tom & Jerry &copy; &unknown; '
            "&#1;</title></programme>",
            21,
            {},
        ),
        ('<programme channel="one" start="20250301200000"><title>1 < 2</title></programme>', 21, {}),
        ('<programme channel="one" start="20250301200000"><title>not closed</programme>', 21, {}),
        ('<programme channel="one" start="20250301200000"><title>no end</title>', 21, {}),
        ('<programme channel="one" start="20250301200000"><title>a\x00b\x07c</title></programme>', 21, {}),
        (
            '<programme channel="one" start="20250301200000"><title><![CDATA[A & <b>B</b>]]></title>'
            "</programme>",
            21,
            {},
        ),
        ("<programme =channel start><title>a</title></programme>", 20, {"no_channel": 1}),
        (
            '<!-- <programme channel="one" start="20250301200000"><title>a</title></programme>'
            "\n<programme/> -->",
            20,
            {},
        ),
        (
            '</tv>\n<?xml version="1.0"?>\n<tv><programme channel="one" start="20250301200000">'
            "<title>second document</title></programme>",
            21,
            {},
        ),
        ("<group>" + SOUND.format(hour=20) + "</group>", 21, {}),
        ("<a>" * 1000 + SOUND.format(hour=20) + "</a>" * 1000, 21, {}),
    ],
)
def test_one_broken_programme_leaves_the_others_alone(
    tmp_path: Path, broken: str, stored: int, reasons: dict[str, int]
) -> None:
    after = '<programme channel="two" start="20250301230000"><title>after</title></programme>'
    outcome = only(tmp_path, tmp_path / "g.xml", guide(broken, after, programmes=20))
    assert (outcome.counts.stored - 1, outcome.reasons) == (stored, reasons)
    assert rows(tmp_path, "SELECT count(*) FROM programmes WHERE title = 'after'") == [(1,)]


def test_titles_out_of_broken_markup(tmp_path: Path) -> None:
    titles = {
        "Tom & Jerry": "Tom & Jerry",
        "1 < 2 &lt; 3": "1 < 2 < 3",
        "caf&eacute;": "café",
        "&unknown;": "&unknown;",
        "<![CDATA[A & B]]>": "A & B",
    }
    only(
        tmp_path,
        tmp_path / "g.xml",
        guide(
            *(
                f'<programme channel="{i}" start="20250301"><title>{title}</title></programme>'
                for i, title in enumerate(titles)
            )
        ),
    )
    assert [title for (title,) in rows(tmp_path, "SELECT title FROM programmes ORDER BY channel")] == list(
        titles.values()
    )


def test_a_cut_file_gives_all_before_the_cut(tmp_path: Path) -> None:
    whole = guide(programmes=20)
    outcome = only(tmp_path, tmp_path / "g.xml", whole[: whole.index(b"Show 15") + 6])
    assert (outcome.counts.stored, outcome.reasons) == (15, {"truncated": 1})
    assert rows(tmp_path, "SELECT line, excerpt FROM rejects") == [
        (18, SOUND.format(hour=15)[: SOUND.format(hour=15).index("Show") + 6])
    ]


def test_encodings(tmp_path: Path) -> None:
    text = guide(
        '<programme channel="one" start="20250301"><title>Élysée – Größe</title></programme>'
    ).decode()
    for name, content in {
        "utf8": text.encode(),
        "bom": b"\xef\xbb\xbf" + text.encode(),
        "utf16": text.replace("UTF-8", "UTF-16").encode("utf-16"),
        "latin1": text.replace("UTF-8", "windows-1252").encode("cp1252"),
        "lying latin1": text.replace("UTF-8", "ISO-8859-1").encode(),
        "lying utf8": text.encode("cp1252"),
    }.items():
        only(tmp_path, tmp_path / f"{name}.xml", content)
    assert rows(tmp_path, "SELECT title, count(*) FROM programmes GROUP BY title") == [("Élysée – Größe", 6)]


def test_too_many_rejects_fail_the_feed(tmp_path: Path) -> None:
    bad = ['<programme channel="one"><title>a</title></programme>'] * 3
    with pytest.raises(FeedError, match=r"3 of 11 programmes cannot be read \(bad_start 3\), more than 20%"):
        only(tmp_path, tmp_path / "g.xml", guide(*bad, programmes=8))
    assert rows(
        tmp_path,
        "SELECT (SELECT count(*) FROM feeds), (SELECT count(*) FROM programmes), (SELECT count(*) "
        "FROM rejects)",
    ) == [(0, 0, 0)]
    assert (
        only(tmp_path, tmp_path / "g.xml", guide(*bad, programmes=8), max_reject_share=0.5).counts.rejected
        == 3
    )


def test_raw_ampersands_give_what_the_mended_file_gives(tmp_path: Path) -> None:
    folder = real_data() / "edge-cases"
    outcomes = read(
        tmp_path, folder / "unescaped-amp_fr.BROKEN.xml.gz", folder / "unescaped-amp_fr.CLEAN.xml.gz"
    )
    assert [outcome.counts.stored for outcome in outcomes] == [9204, 9204]
    query = "SELECT channel, start, title, sub_title FROM programmes WHERE source LIKE '%{}%' ORDER BY ALL"
    assert rows(tmp_path, query.format("BROKEN")) == rows(tmp_path, query.format("CLEAN"))


def test_a_file_sent_as_text_is_told_as_such(tmp_path: Path) -> None:
    folder = real_data() / "edge-cases"
    with pytest.raises(FeedError, match=r"damaged compression.*sent as text.*fetch it again as binary"):
        read(tmp_path, folder / "corrupt-crlf_epgshare.xml.gz")
    assert read(tmp_path, folder / "corrupt-crlf_epgshare.CLEAN.xml.gz")[0].counts.stored == 203


def test_titles_in_angle_brackets_are_titles(tmp_path: Path) -> None:
    titles = ["&lt;SBS 8 뉴스&gt;", "영화 &lt;Parasite&gt;"]
    programme = '<programme channel="{}" start="20250301"><title>{}</title></programme>'
    outcome = only(tmp_path, tmp_path / "g.xml", guide(*map(programme.format, (1, 2), titles)))
    assert outcome.counts.stored == 2
    found = rows(tmp_path, "SELECT title FROM programmes ORDER BY channel")
    assert found == [("<SBS 8 뉴스>",), ("영화 <Parasite>",)]
