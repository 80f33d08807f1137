"""The model as a file: /model, export, and --model of a URL and of a file."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import uvicorn
from starlette.testclient import TestClient

from flows import followed_model
from flows.champion import find_champion
from flows.cli.main import main
from flows.cli.serve import listen
from flows.serving.app import make_app
from flows.serving.loaded_model import RequestKind
from flows.serving.reloader import ModelReloader
from storage.formats.model_file import ModelIdentity, write_model_file
from storage.home.workspace import Workspace
from tasks.search.query import Query
from tasks.search.search import TitleSearch
from tests.flows.command import SAMPLE
from tests.servers import wait_for

NEW = "A Film That No Guide Has"


@pytest.fixture
def file(toy_model: Path, tmp_path: Path) -> Path:
    write_model_file(toy_model, ModelIdentity(version="3", digest="a" * 64), file := tmp_path / "model.zip")
    return file


@pytest.fixture
def reloader(file: Path, tmp_path: Path) -> ModelReloader:
    return ModelReloader(Workspace(tmp_path / "home").home, str(file))


@contextmanager
def serving(reloader: ModelReloader) -> Iterator[str]:
    """Serves a model in a thread; yields the URL."""
    listener = listen("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(make_app(reloader), log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


def answers(reloader: ModelReloader, *titles: str) -> list[object]:
    queries = [Query(title) for title in titles]
    return [json.loads(answer) for _, answer in reloader.answer(RequestKind("similar", 5), queries)]


def test_the_file_is_served_with_its_digest(reloader: ModelReloader, file: Path) -> None:
    content = file.read_bytes()
    etag = f'"{hashlib.sha256(content).hexdigest()}"'
    with TestClient(make_app(reloader), base_url="http://localhost") as client:
        whole, head = client.get("/model"), client.head("/model")
        assert (whole.status_code, whole.content, whole.headers["ETag"]) == (200, content, etag)
        assert (head.status_code, head.content) == (200, b"") and head.headers == whole.headers
        for sent in (etag, f'W/{etag}, "x"', "*"):
            same = client.get("/model", headers={"If-None-Match": sent})
            assert (same.status_code, same.content, same.headers["ETag"]) == (304, b"", etag)
        assert client.get("/model", headers={"If-None-Match": '"x"'}).status_code == 200
        name = whole.headers["Content-Disposition"].split('"')[1]
        assert client.get("/model.sha256").text == f"{etag[1:-1]}  {name}\n"
        assert client.get("/model", headers={"Host": "evil.example"}).status_code == 403
        assert client.post("/model").status_code == 405
    with TestClient(make_app(reloader, "secret"), base_url="http://localhost") as client:
        for path in ("/model", "/model.sha256"):
            assert client.get(path).status_code == client.head(path).status_code == 401
            assert client.get(path, headers={"Authorization": "Bearer secret"}).status_code == 200


def test_answers_are_those_of_the_model_folder(
    toy_model: Path, reloader: ModelReloader, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    search = TitleSearch.open(toy_model)
    title = search.columns["title"][0]
    with serving(reloader) as url:
        follower = ModelReloader(Workspace(tmp_path / "other").home, f"{url}/model")
        assert answers(follower, title, NEW) == answers(reloader, title, NEW)
        assert follower.current.champion.digest == reloader.current.champion.digest
        arguments = ["similar", title, "--home", str(tmp_path / "new"), "--json", "-k", "5"]
        assert main([*arguments, "--model", f"{url}/model"]) == 0
        printed = json.loads(capsys.readouterr().out)
    assert [near["title"] for near in printed] == [near.title for near in search.similar(title, 5)]
    assert printed == answers(reloader, title)[0]["neighbours"]  # pyright: ignore[reportIndexIssue]
    assert main([*arguments, "--model", str(tmp_path / "model.zip")]) == 0
    assert json.loads(capsys.readouterr().out) == printed


@pytest.mark.slow
def test_a_server_follows_another_server(
    toy_model: Path,
    reloader: ModelReloader,
    file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(followed_model, "CHECK_SECONDS", 0.1)
    monkeypatch.setattr("flows.serving.reloader.POLL_SECONDS", 0.1)
    with serving(reloader) as url:
        follower = ModelReloader(Workspace(tmp_path / "other").home, f"{url}/model")
        watcher = threading.Thread(target=follower.watch)
        watcher.start()
        try:
            assert follower.current.champion.version == "3"
            write_model_file(toy_model, ModelIdentity(version="4", digest="b" * 64), file)
            reloader.reload_if_stale()
            wait_for(lambda: follower.current.champion.version == "4", 60, lambda: "version 4 is not served")
            assert len(answers(follower, NEW)) == 1 and not follower.is_stale
        except BaseException:
            follower.stop()
            raise
    try:
        wait_for(lambda: follower.is_stale, 60, lambda: "the lost server is not reported")
        assert follower.current.champion.version == "4"
    finally:
        follower.stop()
        watcher.join()
    assert "reload failed: " in (printed := capsys.readouterr()).err and "version 4" in printed.out


@pytest.mark.slow
def test_every_command_reads_the_exported_model(
    night: tuple[Path, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home, other, file = night[0], tmp_path / "other", tmp_path / "model.zip"
    assert main(["export", str(file), "--format", "model", "--home", str(home)]) == 0
    assert str(file) in capsys.readouterr().out
    assert main(["ingest", "--feed", str(SAMPLE), "--home", str(other)]) == 0
    title = pq.read_table(find_champion(str(home)).folder / "titles.parquet")["title"][0].as_py()
    guides = {place: tmp_path / f"{place.name}.xml" for place in (home, other)}
    printed: dict[Path, list[str]] = {}
    for place in guides:
        model = ["--home", str(place), *(["--model", str(file)] if place == other else [])]
        capsys.readouterr()
        assert main(["similar", title, "--json", *model]) == 0
        assert main(["explain", title, *model]) == 0
        assert main(["enrich", str(SAMPLE), str(guides[place]), *model]) == 0
        printed[place] = capsys.readouterr().out.replace(str(guides[place]), "OUT").splitlines()
    assert printed[home] == printed[other]
    assert guides[home].read_bytes() == guides[other].read_bytes()
    model = ["--home", str(other), "--model", str(file)]
    assert main(["correct", title, "no such category", *model]) == 2
    assert main(["like", title, *model]) == 0
    assert main(["tonight", "--at", "2026-01-15T18:00", *model]) == 0
    assert "because you like" in capsys.readouterr().out
