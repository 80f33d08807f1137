"""Commands for likes and lists on a home with a smoke run of the sample guide."""

import datetime
import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from prefect.logging import disable_run_logger

import flows.cli.likes
import tasks.tonight.task
from flows.cli.sql import query_rows as ask
from storage.artifacts import Tonight
from storage.catalogue.likes import LIKES, SALT_FILE, add_likes, hash_viewer, read_likes
from storage.formats.tonight import FILE, RECOMMENDATIONS
from storage.home.workspace import Workspace
from storage.tracking import Tracking
from tasks.tonight.evening import find_champion, open_evening
from tasks.tonight.settings import TonightSettings
from tasks.tonight.task import recommend
from tasks.tonight.vectors import open_titles
from tests.flows.command import ROOT, answer, guidespace

pytestmark = pytest.mark.slow  # a home of its own

AT = "2026-01-14T18:30:00+00:00"


@pytest.fixture(scope="module")
def home(copy_night, tmp_path_factory):
    """Copy of the home in which Ann likes crime and cookery titles."""
    home = tmp_path_factory.mktemp("viewing") / "home"
    copy_night(home)
    for title in ("Midsomer Murders", "MASTERCHEF"):
        done = guidespace("like", title, "--viewer", "Ann", "--home", home)
        assert (done.returncode, done.stderr) == (0, "")
    assert "Ann likes “MasterChef”" in done.stdout
    assert guidespace("like", "Newsnight", "--viewer", "Ann", "--dislike", "--home", home).returncode == 0
    return home


def test_a_recommender_that_reads_the_likes_of_all_viewers(home):
    options = ("--at", AT, "--recommender", "factorisation", "--home", home, "--json")
    found = answer("tonight", "--viewer", "Ann", *options)
    assert {one["why"][0]["title"] for one in found} == {"Midsomer Murders", "MasterChef"}


def test_a_list_covers_both_tastes_with_reasons(home):
    found = answer("tonight", "--viewer", "Ann", "--at", AT, "--home", home, "--json")
    assert [one["rank"] for one in found] == list(range(1, 11))
    whys = {one["why"][0]["title"] for one in found}
    assert whys == {"Midsomer Murders", "MasterChef"}
    changes = {f"Without “{title}” it would not be listed." for title in whys}
    assert {one["change"] for one in found} >= changes
    begins = [datetime.datetime.fromisoformat(one["start"]) for one in found]
    assert min(begins) >= datetime.datetime.fromisoformat(AT) and max(begins).day == 14
    assert len({one["title"] for one in found}) == 10
    crime = [one for one in found if one["why"][0]["title"] == "Midsomer Murders"]
    assert sum("Crime" in one["categories"] or "Krimi" in one["categories"] for one in crime) > len(crime) / 2


def test_files_hold_the_list(home, tmp_path):
    kinds = [tmp_path / f"tonight.{kind}" for kind in ("html", "ics", "parquet", "json")]
    done = guidespace(
        "tonight", "--viewer", "Ann", "--at", AT, "-k", 4, "--home", home, "--out", *kinds, "--json"
    )
    found = json.loads(done.stdout)
    titles = [one["title"] for one in found]
    assert len(titles) == 4 and json.loads(kinds[3].read_text(encoding="utf-8")) == found
    table = pq.read_table(kinds[2])
    assert table.schema == RECOMMENDATIONS and table["title"].to_pylist() == titles
    assert set(table["viewer"].to_pylist()) == {hash_viewer(home, "Ann")}
    assert kinds[1].read_bytes().count(b"BEGIN:VEVENT\r\n") == 4
    assert '<h1 dir="auto">Tonight for Ann</h1>' in kinds[0].read_text(encoding="utf-8")


def test_the_table_of_a_file_is_read_once(home, tmp_path):
    file = tmp_path / "likes.csv"
    file.write_text(
        "viewer,title,rating,time\nBob,Match of the Day,5,2026-01-01\nBob,A Film Of Nobody,4,2026-01-02\n",
        encoding="utf-8",
    )
    first, second = (guidespace("like", "--from", file, "--home", home).stdout for _ in range(2))
    assert first == f"{file}: 2 rows of 1 viewer about 2 titles, 2 of them new\n"
    assert second == f"{file}: 2 rows of 1 viewer about 2 titles, 0 of them new\n"
    found = answer("tonight", "--viewer", "Bob", "--at", AT, "--home", home, "--json")  # one is in no guide
    assert len(found) == 10
    (kept,) = home.glob("unlisted-*.parquet")
    assert "a film of nobody" in pq.read_table(kept)["show_key"].to_pylist()
    assert answer("tonight", "--viewer", "Bob", "--at", AT, "--home", home, "--json") == found


def test_seen_titles_are_not_recommended(home):
    before = answer("tonight", "--viewer", "Ann", "--at", AT, "--home", home, "--json")
    seen = next(one for one in before if not one["episode"] and not one["sub_title"] and not one["regular"])
    assert guidespace("like", seen["title"], "--seen", "--viewer", "Ann", "--home", home).returncode == 0
    after = answer("tonight", "--viewer", "Ann", "--at", AT, "--home", home, "--json")
    assert seen["title"] not in {one["title"] for one in after}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("like", "Midsummer Murder"), "no title 'Midsummer Murder'; similar titles: “Midsomer Murders”"),
        (("like", "☃☃☃"), "the guide has no title '☃☃☃'"),
        (("like",), "Name a title, or a file by --from."),
        (("like", "--from", "nowhere.csv"), "nowhere.csv is not a file"),
        (("tonight", "--at", AT, "--viewer", "Nobody"), 'run `guidespace like "TITLE"`'),
        (("tonight", "--at", "2031-01-01T20:00", "--viewer", "Ann"), "it has programmes from 2026-01-12"),
        (("tonight", "--recommender", "best"), "'best'; choose factorisation, nearest_likes"),
        (("tonight", "--at", "tomorrow"), "'tomorrow' is not a date; expected an instant such as"),
        (("tonight", "--at", AT, "--hours", "2", "--until", AT), "exclude each other"),
        (("tonight", "--at", AT, "--viewer", "Ann", "--out", "x.pdf"), "expected .html, .ics, .json"),
    ],
)  # fmt: skip
def test_errors_are_one_line(home, arguments, words):
    done = guidespace(*arguments, "--home", home)
    assert done.returncode == 2 and words in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


def test_the_flow_runs_under_prefect(home):
    """As a worker runs it, with a server of its own."""
    code = f"""
import datetime
from flows.server import exit_process, start_prefect
starting = start_prefect({str(home)!r})
from flows.recommend import recommend
assert starting
starting()
made = recommend({str(home)!r}, datetime.datetime.fromisoformat({AT!r}), 3)
print(made.counts["viewers"])
exit_process(0)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, encoding="utf-8", timeout=280
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) == len(set(read_likes(home)[0]["viewer"].to_pylist()))
    (run,) = Tracking(home).mlflow.client.search_runs(
        [Tracking(home).mlflow.experiment_id], "attributes.run_name LIKE 'tonight 2026%'"
    )
    assert run.info.status == "FINISHED" and run.data.metrics["tonight/viewers"] >= 1
    assert run.data.params["recommender.name"] == "nearest_likes"


def test_lists_contain_no_data_of_forgotten_viewers(home, tmp_path):
    file = tmp_path / "likes.csv"
    file.write_text(
        "viewer,title,liked\n" + "".join(f"viewer {n},Midsomer Murders,1\n" for n in range(12)),
        encoding="utf-8",
    )
    assert guidespace("like", "--from", file, "--home", home).returncode == 0
    begin = datetime.datetime.fromisoformat(AT)
    tracking = Tracking(home)
    run = tracking.start_run("recommend-test", "tonight")
    with disable_run_logger():
        made = recommend.fn(str(home), begin, begin + datetime.timedelta(hours=6), TonightSettings(), run)
    viewers = len(set(read_likes(home)[0]["viewer"].to_pylist()))
    assert made.counts["viewers"] == viewers >= 13 and made.counts["programmes"] == 10 * viewers
    assert Workspace(home).read(Tonight, made.path.rsplit("/", 1)[1]) == made
    logged = [file.path for file in tracking.mlflow.client.list_artifacts(run, "tonight")]
    assert logged == [f"tonight/viewer-{n:02}.html" for n in range(1, 11)]
    salt, code = (home / SALT_FILE).read_text(encoding="utf-8"), hash_viewer(home, "Ann")
    for file in (home / made.path).glob("*.html"):
        text = file.read_text(encoding="utf-8")
        assert '<h1 dir="auto">Tonight</h1>' in text and salt not in text and code not in text
    alone = answer("tonight", "--viewer", "Ann", "--at", AT, "--hours", 6, "--home", home, "--json")
    rows = ask(home, "SELECT * FROM tonight_of($name) ORDER BY rank", ["name= Ann "])
    assert [row["title"] for row in rows] == [one["title"] for one in alone]
    assert salt not in guidespace("sql", "--home", home).stdout

    done = guidespace("forget", "Ann", "--home", home)
    assert done.returncode == 0 and done.stdout.endswith("likes of Ann deleted\n")
    left = [file for file in home.rglob("*") if file.is_file() and code.encode() in file.read_bytes()]
    assert left == [] and tracking.mlflow.client.list_artifacts(run, "tonight") == []
    assert guidespace("tonight", "--viewer", "Ann", "--at", AT, "--home", home).returncode == 2
    nobody = guidespace("sql", "FROM tonight_of('Ann')", "--home", home)
    assert nobody.returncode == 2 and "run the flow `recommend`" in nobody.stderr


def like(home, title, *viewers):
    columns = {"show_key": title.lower(), "episode": "", "sub_title": "", "source": "stated", "title": title}
    columns |= {"time": datetime.datetime(2026, 1, 1), "value": 1.0, "seen": False}
    rows = [{"viewer": viewer, **columns} for viewer in viewers]
    add_likes(home, pa.Table.from_pylist(rows, schema=LIKES))


def test_a_running_flow_does_not_restore_a_forgotten_viewer(home, monkeypatch):
    """`forget` comes after the flow has read the likes and before it has published the lists."""
    like(home, "Midsomer Murders", "Eve", "Bob")
    workspace, read, waits = Workspace(home), threading.Event(), threading.Event()
    tracking = Tracking(home)
    run, code = tracking.start_run("recommend-forget", "tonight"), hash_viewer(home, "Eve")

    def open_later(*arguments, **options):
        read.set()
        assert waits.wait(60), "forget does not wait for the writer of the home"
        return open_evening(*arguments, **options)

    monkeypatch.setattr(tasks.tonight.task, "open_evening", open_later)
    monkeypatch.setattr(flows.cli.likes, "print", lambda *_, **__: waits.set(), raising=False)

    def make_lists():
        begin = datetime.datetime.fromisoformat(AT)
        with workspace.writing("lists of tonight"), disable_run_logger():
            made = recommend.fn(str(home), begin, begin + datetime.timedelta(hours=6), TonightSettings(), run)
            return made, pq.read_table(home / made.path / FILE)["viewer"].to_pylist()

    with ThreadPoolExecutor(1) as pool:
        lists = pool.submit(make_lists)
        assert read.wait(60)
        assert flows.cli.likes.forget(str(home), "Eve") == 1
        made, viewers = lists.result()
    assert code in viewers and not (home / made.path).exists()
    assert tracking.mlflow.client.list_artifacts(run, "tonight") == []
    left = [file for file in home.rglob("*") if file.is_file() and code.encode() in file.read_bytes()]
    assert left == [] and set(read_likes(home)[0]["viewer"].to_pylist()) >= {hash_viewer(home, "Bob")}


def test_a_running_flow_does_not_restore_a_forgotten_title(home):
    like(home, "A Film Of Eve Alone", "Eve")
    opinions, _ = read_likes(home, hash_viewer(home, "Eve"))
    champion, titles = find_champion(home), {"a film of eve alone": "A Film Of Eve Alone"}

    def kept():
        files = home.glob("unlisted-*")
        return {key for file in files for key in pq.read_table(file)["show_key"].to_pylist()}

    open_titles(champion.folder, champion.digest, home, titles, opinions)
    assert kept() >= {*titles}
    assert flows.cli.likes.forget(str(home), "Eve") == 1 and not kept()
    assert len(open_titles(champion.folder, champion.digest, home, titles, opinions).vectors) == 1
    assert not kept()
