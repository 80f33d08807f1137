"""Every element and attribute of xmltv.dtd is stored in the catalogue."""

import itertools
import json
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from guides import read, rows

# The elements of xmltv.dtd: attributes, elements within, and whether text stands in it. "+": two of them are
# written.
PEOPLE = (
    *("director", "actor", "writer", "adapter", "producer"),
    *("composer", "editor", "presenter", "commentator", "guest"),
)
ELEMENTS: dict[str, tuple[str, str, bool]] = {
    "tv": (
        "date source-info-url source-info-name source-data-url generator-info-name generator-info-url",
        "channel+ programme+",
        False,
    ),
    "channel": ("id", "display-name+ icon+ url+", False),
    "display-name": ("lang", "", True),
    "icon": ("src width height", "", False),
    "url": ("system", "", True),
    "programme": (
        "start stop pdc-start vps-start showview videoplus channel clumpidx",
        "title+ sub-title+ desc+ credits date category+ keyword+ language orig-language length "
        "icon+ url+ country+ episode-num+ "
        "video audio previously-shown premiere last-chance new subtitles+ rating+ star-rating+ "
        "review+ image+",
        False,
    ),
    **dict.fromkeys(("title", "sub-title", "desc", "category", "keyword", "country"), ("lang", "", True)),
    **dict.fromkeys(("language", "orig-language", "premiere", "last-chance"), ("lang", "", True)),
    "credits": ("", " ".join(f"{person}+" for person in PEOPLE), False),
    **{person: ("role guest" if person == "actor" else "", "image+ url+", True) for person in PEOPLE},
    "date": ("", "", True),
    "length": ("units", "", True),
    "episode-num": ("system", "", True),
    "video": ("", "present colour aspect quality", False),
    "audio": ("", "present stereo", False),
    **dict.fromkeys(("present", "colour", "aspect", "quality", "stereo", "value"), ("", "", True)),
    "previously-shown": ("start channel", "", False),
    "new": ("", "", False),
    "subtitles": ("type", "language", False),
    "rating": ("system", "value icon+", False),
    "star-rating": ("system", "value icon+", False),
    "review": ("type source reviewer lang", "", True),
    "image": ("type size orient system", "", True),
}
TIMES = {
    ("programme", "start"): "20250301100000 +0000",
    ("programme", "stop"): "20250301113000 +0000",
    ("previously-shown", "start"): "20240102030405 +0000",
}
STORED_TIMES = {
    "20250301100000 +0000": "2025-03-01 10:00:00",
    "20250301113000 +0000": "2025-03-01 11:30:00",
    "20240102030405 +0000": "2024-01-02 03:04:05",
}


class Writer:
    """Writes elements whose attributes and texts have distinct values."""

    def __init__(self) -> None:
        self.numbers = itertools.count(1)
        self.values: list[str] = []

    def value(self, element: str, attribute: str) -> str:
        time = TIMES.get((element, attribute))
        value = time or f"{element}-{attribute} <é & {next(self.numbers)}>"
        self.values.append(value)
        return value

    def write(self, name: str) -> str:
        attributes, children, has_text = ELEMENTS[name]
        attributes_text = "".join(
            f" {attribute}={quoteattr(self.value(name, attribute))}" for attribute in attributes.split()
        )
        text = escape(self.value(name, "text")) if has_text else ""
        within = [
            self.write(child.rstrip("+"))
            for child in children.split()
            for _ in range(1 + child.endswith("+"))
        ]
        return f"<{name}{attributes_text}>{text}{''.join(within)}</{name}>"


def everything(home: Path) -> str:
    """Returns the content of the catalogue as text."""
    tables = ("programmes", "details", "originals", "channel_history", "feed_attributes", "windows", "feeds")
    return "\n".join(text(cell) for table in tables for row in rows(home, f"FROM {table}") for cell in row)


def text(cell: object) -> str:
    if isinstance(cell, str) and cell.startswith(("{", "[")):
        cell = json.loads(cell)
    if isinstance(cell, dict):
        return "\n".join(text(each) for pair in cell.items() for each in pair)
    return "\n".join(map(text, cell)) if isinstance(cell, list) else str(cell)


def test_every_element_and_attribute_of_the_dtd_is_in_the_catalogue(tmp_path: Path) -> None:
    writer = Writer()
    content = writer.write("tv")
    (tmp_path / "g.xml").write_text(f'<?xml version="1.0" encoding="UTF-8"?>\n{content}', encoding="utf-8")
    (outcome,) = read(tmp_path, tmp_path / "g.xml")
    assert (outcome.counts.seen, outcome.counts.rejected) == (2, 0)
    contents = set(everything(tmp_path).split("\n"))
    assert len(writer.values) > 200
    assert [value for value in writer.values if STORED_TIMES.get(value, value) not in contents] == []


def test_every_changed_value_replaces_its_programme(tmp_path: Path) -> None:
    """Changes one element or attribute per programme, including those that are stored as JSON."""
    writer = Writer()
    elements = [name.rstrip("+") for name in ELEMENTS["programme"][1].split() if name != "title+"]
    attributes = [
        name for name in ELEMENTS["programme"][0].split() if name not in ("channel", "start", "stop")
    ]
    attributes += [
        f"{name} lang" for name in ("title", "sub-title", "desc", "category", "keyword", "country")
    ]
    programme = '<programme channel="{}" start="20250301" stop="20250302"{}><title{}>t</title>{}</programme>'

    def guide() -> str:
        content = [programme.format(name, "", "", writer.write(name)) for name in elements]
        for name in attributes:
            element, _, is_language = name.partition(" ")
            attributes_text = f" {is_language or element}={quoteattr(writer.value('', name))}"
            within = (
                f"<{element}{attributes_text}>same</{element}>" if is_language and element != "title" else ""
            )
            content.append(
                programme.format(
                    name,
                    "" if is_language else attributes_text,
                    attributes_text if element == "title" else "",
                    within,
                )
            )
        return "".join(content)

    first, second = guide(), guide()
    count = len(elements) + len(attributes)
    for content, stored in ((first, count), (f"<!-- again -->{first}", 0), (second, count - 1)):
        (tmp_path / "g.xml").write_text(f"<tv>{content}</tv>", encoding="utf-8")
        assert read(tmp_path, tmp_path / "g.xml")[0].counts.stored == stored
    assert rows(
        tmp_path, "SELECT channel FROM programmes GROUP BY channel HAVING count(replaced_by) = 0"
    ) == [("new",)]
    now = "FROM programmes WHERE channel = 'showview' AND replaced_by IS NULL"
    assert rows(tmp_path, f"SELECT extra->>'$.\"@showview\"' {now}") == [(writer.values[-9],)]


def test_a_changed_second_icon_is_a_new_version_of_a_channel(tmp_path: Path) -> None:
    channel = (
        '<channel id="a"><display-name lang="en">A</display-name><icon src="a"/><icon src="{}"/></channel>'
    )
    for icon in ("b", "b", "c"):
        (tmp_path / "g.xml").write_text(f"<tv>{channel.format(icon)}</tv>", encoding="utf-8")
        read(tmp_path, tmp_path / "g.xml")
    assert rows(
        tmp_path, "SELECT icon, extra->>'$.icon[1].\"@src\"' FROM channel_history ORDER BY feed_id"
    ) == [("a", "b"), ("a", "c")]
    assert rows(tmp_path, "SELECT extra FROM channels") == [
        ('{"display-name":[{"@lang":"en"}],"icon":[{"@src":"a"},{"@src":"c"}]}',)
    ]


def test_plain_programmes_have_no_extra(tmp_path: Path) -> None:
    plain = (
        '<credits><actor role="r">A</actor></credits><keyword>k</keyword><country>c</country><language>'
        "l</language>"
    )
    plain += (
        '<length units="minutes">60</length><icon src="i"/><url>u</url><rating system="s"><value>'
        "v</value></rating>"
    )
    plain += (
        '<star-rating><value>v</value></star-rating><previously-shown start="20240101"/><new/><premiere/>'
    )
    programme = (
        '<programme channel="a" start="20250301" stop="20250302"><title lang="en">t</title><category>'
        "c</category>{}</programme>"
    )
    (tmp_path / "g.xml").write_text(
        f"<tv>{programme.format('')}{programme.format(plain).replace('20250301', '2025030112')}</tv>",
        encoding="utf-8",
    )
    read(tmp_path, tmp_path / "g.xml")
    assert rows(tmp_path, "SELECT extra FROM programmes") == [(None,), (None,)]
