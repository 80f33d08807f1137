"""`guidespace tonight` on a small guide with all that it reads: flags, ratings, credits, channels, zones."""

import datetime
import json
import shutil
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flows.cli.main import main
from storage.artifacts import Guide
from storage.catalogue.evening import DETAIL_TYPES
from storage.catalogue.likes import LIKES, add_likes, hash_viewer, set_viewer_zone
from storage.formats.tonight import FILE, RECOMMENDATIONS
from storage.home.guides import current_guide
from storage.home.workspace import Workspace
from storage.home.zones import set_zone
from tasks.tonight.evening import TonightError
from tasks.tonight.settings import TonightSettings
from tasks.tonight.task import recommend
from tests import worlds

LIKED, OTHER, *TITLES = (title for title, category in worlds.titles() if category == "crime")
AT = ("--at", "2026-03-29T12:00+00:00")  # clocks in Europe go forward on this day
ANGELA = "<credits><actor>Angela L.</actor><writer>Will W.</writer></credits>"
PROGRAMMES = [  # hour (UTC), channel, title, elements
    ("18:30", "one", TITLES[0], f"{ANGELA}<new/><rating system='FSK'><value>6</value></rating>"),
    ("18:30", "two", TITLES[1], "<previously-shown/><rating system='VCHIP'><value>TV-MA</value></rating>"),
    ("18:30", "three", TITLES[2], "<rating system='Martian'><value>Zorg</value></rating>"),
    ("19:30", "one", TITLES[3], "<previously-shown/><premiere/><new/><icon src='https://icons.example/x.png'/>"),
    ("19:30", "shop", TITLES[4], ""),
    ("16:30", "one", TITLES[5], ""),  # 18:30 in Berlin
    ("23:00", "two", TITLES[6], "<category>Movie</category>"),  # 1:00 in Berlin
    ("10:00", "one", LIKED, ANGELA),
]  # fmt: skip


@pytest.fixture(scope="module")
def home(served_home, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("tonight")
    shutil.copytree(served_home, folder / "home")
    set_zone(folder / "home", "UTC")
    names = {"one": "One", "two": "Two", "three": "Three", "shop": "QVC Beauty"}
    content = "".join(
        f"<channel id='{key}'><display-name>{name}</display-name></channel>" for key, name in names.items()
    )
    for start, channel, title, elements in PROGRAMMES:
        hour = start.replace(":", "")
        content += f"<programme start='20260329{hour}00 +0000' channel='{channel}'>"
        content += f"<title>{title}</title>{elements}</programme>"
    (folder / "guide.xml").write_text(f"<tv>{content}</tv>", encoding="utf-8")
    assert main(["ingest", "--feed", str(folder / "guide.xml"), "--home", str(folder / "home")]) == 0
    assert main(["like", LIKED, "--home", str(folder / "home")]) == 0
    return folder / "home"


@pytest.fixture
def listed(home, capsys):
    def run(*options) -> tuple[dict, str]:
        assert main(["tonight", *AT, "--home", str(home), "--json", *options]) == 0
        output = capsys.readouterr()
        return {one["title"]: one for one in json.loads(output.out)}, output.err

    return run


def test_flags_ratings_and_icons_reach_the_list(listed):
    found, notes = listed()
    assert found.keys() == {*TITLES[:4], TITLES[6]} and notes == ""
    new, repeat, unknown, again = (found[title] for title in TITLES[:4])
    assert (new["is_new"], new["is_repeat"], new["age"], new["ratings"]) == (True, False, 6, ["FSK 6"])
    assert (repeat["is_repeat"], repeat["age"], repeat["ratings"]) == (True, 17, ["TV-MA"])
    assert (unknown["age"], unknown["unknown_ratings"]) == (None, ["Martian Zorg"])
    assert (again["is_premiere"], again["is_repeat"]) == (True, False)
    assert again["icon"] == "https://icons.example/x.png"


def test_repeats_and_programmes_above_the_limit_are_hidden_with_a_note(listed):
    found, notes = listed("--hide-repeats", "--age", "12")
    assert found.keys() == {TITLES[0], TITLES[3], TITLES[6]}
    assert "note: repeats, hidden: 1 of 5 programmes\n" in notes
    assert "note: unknown age rating, hidden: 1 (Martian Zorg)\n" in notes
    assert listed("--age", "12", "--hide-unrated")[0].keys() == {TITLES[0]}


def test_one_kind_is_listed_on_request(listed):
    assert listed("--kind", "film")[0].keys() == {TITLES[6]}


def test_shopping_is_listed_on_request(listed):
    assert TITLES[4] in listed("--include", "shopping")[0]


def test_people_of_liked_titles_are_mentioned(listed, home, capsys):
    people = {title: one["people"] for title, one in listed()[0].items()}
    assert people.pop(TITLES[0]) == [{"name": "Angela L.", "role": "actor", "title": LIKED}]
    assert not any(people.values())
    assert main(["tonight", *AT, "--home", str(home)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert f"       with Angela L., as in {LIKED}" in lines
    assert "       premiere" in lines and any(line.endswith("new · FSK 6") for line in lines)


def test_the_evening_is_that_of_the_viewers_zone(listed, home, capsys, tmp_path):
    assert main(["like", LIKED, "--viewer", "Ann", "--home", str(home)]) == 0
    assert main(["zone", "Europe/Berlin", "--viewer", "Ann", "--home", str(home)]) == 0
    assert main(["zone", "--home", str(home)]) == 0
    assert capsys.readouterr().out.endswith("Europe/Berlin\nUTC\n")
    page = tmp_path / "tonight.html"
    found = listed("--viewer", "Ann", "--out", str(page))[0]
    assert TITLES[5] in found and TITLES[6] not in found
    assert found[TITLES[5]]["start"] == "2026-03-29T16:30:00+00:00"
    assert '"zone":"Europe/Berlin"' in page.read_text(encoding="utf-8").replace('": "', '":"')
    assert main(["tonight", *AT, "--viewer", "Ann", "--home", str(home)]) == 0
    assert f"18:30  {TITLES[5]}" in capsys.readouterr().out


def test_the_flow_makes_each_list_for_the_zone_of_its_viewer(home, without_run):
    add_likes(home, pa.Table.from_pylist([like("Eve"), like("Bob")], schema=LIKES))
    set_viewer_zone(home, "Eve", "Europe/Berlin")
    begin = datetime.datetime(2026, 3, 29, 18, tzinfo=ZoneInfo("UTC"))
    end = begin + datetime.timedelta(hours=6)
    made = without_run(recommend, str(home), begin, end, TonightSettings(hide_repeats=True))
    table = pq.read_table(home / made.path / FILE)
    assert table.schema == RECOMMENDATIONS
    titles = {}
    for row in table.to_pylist():
        assert row["is_repeat"] is False
        titles.setdefault(row["viewer"], set()).add(row["title"])
    assert titles[hash_viewer(home, "Bob")] == {TITLES[0], TITLES[2], TITLES[3], TITLES[6]}
    assert titles[hash_viewer(home, "Eve")] == {TITLES[0], TITLES[2], TITLES[3], TITLES[5]}


def test_an_evening_without_programmes_in_one_zone_does_not_prevent_other_lists(home, without_run, tmp_path):
    copy = shutil.copytree(home, tmp_path / "home")
    begin = datetime.datetime(2026, 3, 29, 18, tzinfo=ZoneInfo("UTC"))
    interval = begin, begin + datetime.timedelta(hours=6)
    add_likes(copy, pa.Table.from_pylist([like("Eve"), like("Bob")], schema=LIKES))
    set_viewer_zone(copy, "Eve", "Pacific/Kiritimati")  # 4:00 to 10:00 UTC
    made = without_run(recommend, str(copy), *interval, TonightSettings())
    viewers = set(pq.read_table(copy / made.path / FILE)["viewer"].to_pylist())
    assert hash_viewer(copy, "Bob") in viewers and hash_viewer(copy, "Eve") not in viewers
    for name in ("me", "Ann", "Bob"):
        set_viewer_zone(copy, name, "Pacific/Kiritimati")
    with pytest.raises(TonightError, match="the guide has no programme"):
        without_run(recommend, str(copy), *interval, TonightSettings())


def like(viewer: str) -> dict:
    about = {"viewer": viewer, "show_key": LIKED.lower(), "title": LIKED, "episode": "", "sub_title": ""}
    return about | {"source": "stated", "time": datetime.datetime(2026, 1, 1), "value": 1.0, "seen": False}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--include", "news"], "choose placeholders, shopping, adult"),
        (["--kind", "filme"], "choose film, series, news"),
        (["--kind", "news"], "no programme of this evening is of the requested kinds: news"),
        (["--hide-unrated"], "--hide-unrated needs --age"),
        (["--age", "-1"], "--age"),
        (["--age", "3", "--hide-unrated"], "nothing is left to recommend: minimum age above 3"),
    ],
)
def test_wrong_options_are_errors(home, capsys, options, message):
    assert main(["tonight", *AT, "--home", str(home), *options]) == 2
    assert message in capsys.readouterr().err


def test_a_guide_of_an_older_version_is_read_but_does_not_filter(home, capsys, tmp_path):
    older = str(tmp_path / "home")
    workspace = Workspace(shutil.copytree(home, older))
    guide = current_guide(workspace)
    assert guide is not None
    with workspace.publishing(Guide, "older") as draft:
        shutil.copytree(workspace.folder(guide), draft.folder, dirs_exist_ok=True)
        (draft.folder / "artifact.json").unlink()
        table = pq.read_table(draft.folder / "programmes.parquet").drop_columns(
            [*DETAIL_TYPES, "credits", "icon"]
        )
        pq.write_table(table, draft.folder / "programmes.parquet")
    assert main(["tonight", *AT, "--home", older, "--json"]) == 0
    found = {one["title"]: one for one in json.loads(capsys.readouterr().out)}
    assert found.keys() == {*TITLES[:4], TITLES[6]}
    assert found[TITLES[0]]["age"] is None and found[TITLES[0]]["credits"] == []
    assert main(["tonight", *AT, "--home", older, "--age", "12"]) == 2
    assert "older version, without repeats and age ratings" in capsys.readouterr().err
