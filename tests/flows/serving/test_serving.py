"""``guidespace serve``: answers, errors, metrics, and reloads without lost requests."""

import datetime
import json
import socket
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError
from starlette.testclient import TestClient

from flows.cli.main import main
from flows.serving.app import make_app
from flows.serving.batcher import Unavailable
from flows.serving.loaded_model import LoadedModel, RequestKind
from flows.serving.neighbours import neighbour_documents
from flows.serving.reloader import ModelReloader
from flows.serving.schema import (
    MAX_BODY_BYTES,
    Answers,
    Categories,
    Similar,
    SimilarRequest,
    format_validation_error,
)
from storage.addresses import is_loopback
from storage.home.corrections import Correction, write_corrections
from storage.tracking import Registry
from tasks.enrich.explain import decide
from tasks.enrich.model import CategoryModel
from tasks.search.query import Query
from tasks.search.search import TitleSearch
from tests import worlds
from tests.flows.command import guidespace
from tests.flows.serve_process import AT, NEW, STAND_IN
from tests.flows.up_process import until

slow = pytest.mark.slow

REFUSED = [
    (b'{"titles": []}', "titles: List should have at least 1 item"),
    (b'{"titles": "News"}', "titles: Input should be a valid array, got 'News'"),
    (b'{"titles": ["News", 7]}', "titles.1: Input should be a valid string, got 7"),
    (b'{"titles": ["  "]}', "titles.0: String should match pattern"),
    (b'{"titles": [{"title": "News", "hour": 24}]}', "titles.0.hour: Input should be less than or equal to"),
    (b'{"titles": [{"title": "News", "day": 1}]}', "titles.0.day: Extra inputs are not permitted, got 1"),
    (b'{"titles": ["News"], "k": 1001}', "k: Input should be less than or equal to 1000, got 1001"),
    (b'{"titles": ["News"], "k": "3"}', "k: Input should be a valid integer, got '3'"),
    (b'{"titles": ["News"], "K": 3}', "K: Extra inputs are not permitted, got 3"),
    (b'{"title": "News"}', "titles: Field required"),
    (b'{"titles": ["News"]', "the body is not JSON in UTF-8: EOF while parsing"),
    (b'{"titles": ["\xff"]}', "the body is not JSON in UTF-8: invalid unicode code point"),
    (b'{"titles": ["\\ud800"]}', "the body is not JSON in UTF-8"),
    (b"", "the body is not JSON in UTF-8: EOF"),
    (b"[]", "the body: Input should be an object, got []"),
    (json.dumps({"titles": ["News"] * 257}).encode(), "titles: List should have at most 256 items"),
    (json.dumps({"titles": ["N" * 1001]}).encode(), "titles.0: String should have at most 1000 characters"),
]


@pytest.mark.parametrize(("body", "reason"), REFUSED)
def test_refused_requests_name_the_field_the_problem_and_an_example(body: bytes, reason: str) -> None:
    with pytest.raises(ValidationError) as caught:
        SimilarRequest.model_validate_json(body)
    told = format_validation_error(caught.value)
    assert told.startswith(reason) and told.endswith(
        'expected for example {"titles": ["Cooking with Nigella"]}'
    )
    assert len(told) < 400


def test_other_machines_need_a_token(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GUIDESPACE_SERVE_TOKEN", raising=False)
    for host in ("0.0.0.0", "::", "192.168.1.2", "example.org"):
        assert not is_loopback(host)
        assert main(["serve", "--home", str(tmp_path), "--host", host]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert host in line and "set GUIDESPACE_SERVE_TOKEN" in line
    assert all(
        map(is_loopback, ("127.0.0.1", "127.9.9.9", "::1", "localhost", socket.gethostbyaddr("127.0.0.1")[0]))
    )


@pytest.fixture(scope="module")
def reloader(served_home: Path) -> ModelReloader:
    return ModelReloader(served_home)


def client_of(reloader: ModelReloader, token: str = "", sent: str = "") -> TestClient:
    headers = {"Authorization": f"Bearer {sent}"} if sent else {}
    return TestClient(make_app(reloader, token), base_url="http://localhost", headers=headers)


@slow
def test_answers_are_those_of_the_commands(reloader: ModelReloader, served_titles: list[str]) -> None:
    folder, asked = reloader.current.champion.folder, [served_titles[0], served_titles[7], NEW, "ᎣᏏᏲ"]
    with client_of(reloader) as client:
        similar = client.post("/similar", json={"titles": asked, "k": 4})
        several = client.post("/similar", json={"titles": [{"title": NEW, "hour": 20, "description": "x"}]})
        categories = client.post("/categories", json={"titles": asked})
        vectors, _ = (client.post("/vectors", json={"titles": asked}) for _ in range(2))
        assert 'guidespace_cached_titles_total{path="/vectors"} 4.0' in client.get("/metrics").text
    assert similar.json()["model"] == {"name": "guidespace-titles", "version": "1", "digest": "a" * 64}
    search, model = TitleSearch.open(folder), CategoryModel(folder)
    for title, answer in zip(asked[:3], similar.json()["answers"], strict=False):
        near = neighbour_documents({}, search.similar(title, 4))
        assert answer == {"title": title, "neighbours": near, "reason": None} and len(near) == 4
    for title, answer in zip(asked[:2], categories.json()["answers"], strict=False):
        assert answer["decision"] == json.loads(json.dumps(asdict(decide(model, title))))
    for answers in (similar, categories, vectors):
        assert "nothing is known of the title 'ᎣᏏᏲ'" in answers.json()["answers"][3]["reason"]
    near = neighbour_documents({}, search.similar(Query(NEW, "x", hour=20)))
    assert several.json()["answers"][0]["neighbours"] == near
    known, _, new, none = vectors.json()["answers"]
    assert known["vector"] == pytest.approx(search.vectors_with_context[0].tolist()) and known["aired"]
    assert not new["aired"] and none["vector"] is None
    TypeAdapter(Answers[Similar]).validate_json(similar.content, strict=True)
    TypeAdapter(Answers[Categories]).validate_json(categories.content, strict=True)


@slow
def test_tonight_returns_only_titles_of_this_evening_with_airings(
    served_home: Path, reloader: ModelReloader, served_titles: list[str]
) -> None:
    model = LoadedModel(reloader.home, reloader.current.champion, reloader.current.search, {}, AT)
    kind = RequestKind("similar", 5, tonight=True)
    answer = json.loads(model.answer(kind, [Query(served_titles[-1])])[0])
    begins = [near["airings"][0]["start"] for near in answer["neighbours"]]
    assert len(begins) == 5 and all("2025-03-01T20" <= start < "2025-03-02" for start in begins)
    later = LoadedModel(reloader.home, model.champion, model.search, {}, AT + datetime.timedelta(days=300))
    with pytest.raises(Unavailable, match="the guide has no programme from 2025-12-26 20:00"):
        later.answer(kind, [Query(served_titles[-1])])


@slow
def test_only_answers_about_this_evening_expire(
    served_home: Path, served_titles: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flows.serving.reloader._now_in_home_zone", lambda home: AT)
    reloader, query = ModelReloader(served_home), Query(served_titles[-1])
    kinds = RequestKind("similar", 5), RequestKind("categories"), RequestKind("similar", 5, tonight=True)
    answers = [reloader.answer(kind, [query])[0][1] for kind in kinds]
    previous = reloader.current
    later = AT + datetime.timedelta(minutes=10)
    monkeypatch.setattr("flows.serving.reloader._now_in_home_zone", lambda home: later)
    reloader.reload_if_stale()
    assert reloader.current is not previous
    assert [reloader.current.cached_answer(kind, query) for kind in kinds] == [*answers[:2], None]


def test_a_restricted_search_embeds_titles_that_the_model_lacks(toy_model: Path) -> None:
    search = TitleSearch.open(toy_model)
    row = 5
    some = {search.columns["show_key"][row]: search.columns["title"][row], "nobody cooks": "Nobody Cooks"}
    only = search.restrict_to(some)
    assert only.columns["title"] == [search.columns["title"][row], "Nobody Cooks"]
    ((near,),) = search.similar_many([Query("Nobody cooks")], 5, only)  # pyright: ignore[reportAssignmentType]
    assert near.title == search.columns["title"][row]
    first, second = search.similar_many([Query(search.columns["title"][0])], 5, only)[0]  # pyright: ignore
    assert {first.title, second.title} == {*only.columns["title"]}
    alone = search.embed([search.look_up(Query("Nobody Cooks"))])[0]
    assert (only.vectors_with_context[1] == alone).all() and (
        only.vectors_with_context[0] == search.vectors_with_context[row]
    ).all()


@slow
def test_requests_need_the_token_if_one_is_set(reloader: ModelReloader) -> None:
    asked = {"titles": [NEW]}
    for sent, status in (("", 401), ("wrong", 401), ("sécret", 200)):
        headers = {"Authorization": f"Bearer {sent}".encode()} if sent else {}
        with client_of(reloader, token="sécret") as client:
            answered = [
                client.post(path, json=asked, headers=headers) for path in ("/similar", "/categories")
            ]
            answered.append(client.get("/metrics", headers=headers))
            assert {one.status_code for one in answered} == {status}
            challenge = "Bearer" if status == 401 else None
            assert {one.headers.get("WWW-Authenticate") for one in answered} == {challenge}
            assert client.get("/health").status_code == 200
    assert "Bearer TOKEN" in client_of(reloader, token="sécret").post("/similar", json=asked).json()["reason"]


@slow
def test_refusals_by_http_are_400_and_counted(reloader: ModelReloader) -> None:
    with client_of(reloader) as client:
        for body, reason in REFUSED:
            answer = client.post("/similar", content=body)
            assert answer.status_code == 400 and answer.json()["reason"].startswith(reason)
        large = client.post("/vectors", content=b" " * (MAX_BODY_BYTES + 1))
        assert (large.status_code, large.json()["reason"][:39]) == (
            400,
            "the body has more than 1,048,576 bytes;",
        )
        assert client.post("/similar", json={"titles": [NEW], "tonight": True}).status_code == 503
        assert client.get("/nothing").json()["reason"].startswith("there is no /nothing; see /docs")
        for header in (
            {"Host": "elsewhere.example"},
            {"Origin": "http://elsewhere.example"},
            {"Origin": "null"},
        ):
            assert client.get("/health", headers=header).status_code == 403
        told = client.get("/metrics").text
    assert f'guidespace_requests_total{{path="/similar",status="400"}} {len(REFUSED)}.0' in told
    assert f'guidespace_errors_total{{path="/similar",status="400"}} {len(REFUSED)}.0' in told
    assert 'guidespace_requests_total{path="/similar",status="503"} 1.0' in told
    assert 'guidespace_request_seconds_bucket{le="0.02",path="/similar"}' in told
    assert f'guidespace_model_info{{digest="{"a" * 64}",model="guidespace-titles",version="1"}} 1.0' in told
    assert "process_resident_memory_bytes" in told


@slow
def test_a_failed_first_preparation_is_reported_and_repeated(
    served_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reloader, warm_up, failed = ModelReloader(served_home), LoadedModel.warm_up, threading.Event()
    disk_is_free = threading.Event()

    def fails_at_first(model: LoadedModel) -> None:
        if not disk_is_free.is_set():
            failed.set()
            raise OSError("the disk is full")
        warm_up(model)

    monkeypatch.setattr(LoadedModel, "warm_up", fails_at_first)
    monkeypatch.setattr("flows.serving.reloader.POLL_SECONDS", 0.01)
    watcher = threading.Thread(target=reloader.watch)
    watcher.start()
    try:
        with client_of(reloader) as client:
            assert failed.wait(60)
            until(lambda: client.get("/health").json()["status"] == "stale")
            assert "\nguidespace_stale 1.0" in client.get("/metrics").text
            disk_is_free.set()
            until(lambda: client.get("/health").json()["status"] == "ok")
            assert "\nguidespace_stale 0.0" in client.get("/metrics").text
            registry = Registry(served_home, code=STAND_IN)
            registry.promote("2", "not worse", at=AT + datetime.timedelta(days=3))
            until(lambda: client.get("/health").json()["model"]["version"] == "2")
    finally:
        reloader.stop()
        watcher.join()
        Registry(served_home, code=STAND_IN).promote("1", "back", at=AT + datetime.timedelta(days=4))
    assert capsys.readouterr().err == "guidespace serve: reload failed: the disk is full\n"


@slow
def test_corrections_apply_without_a_reload(
    served_home: Path, reloader: ModelReloader, served_titles: list[str]
) -> None:
    previous = reloader.current

    def nearest() -> dict[str, Any]:
        ((_, answer),) = reloader.answer(RequestKind("similar", 1), [Query(served_titles[0])])
        return json.loads(answer)["neighbours"][0]

    title = nearest()["title"]
    made = Correction(show_key=title.casefold(), title=title, categories=("news",), corrected_at=AT)
    try:
        write_corrections(served_home, [made])
        reloader.reload_if_stale()
        assert reloader.current is not previous and reloader.reloads == 0
        assert reloader.current.search is previous.search  # the model is opened once
        corrected = nearest()
        assert (corrected["categories"], corrected["corrected_at"]) == (["news"], "2025-03-01T20:00:00+00:00")
    finally:
        (served_home / "corrections.json").unlink()


@slow
def test_a_rollback_is_one_command(served_home: Path, tmp_path: Path) -> None:
    registry = Registry(served_home, code=STAND_IN)
    registry.promote("2", "not worse", at=AT + datetime.timedelta(days=5))
    try:
        done = guidespace("rollback", "--home", served_home)
        assert (done.returncode, done.stdout) == (
            0,
            "guidespace-titles: version 1 is the champion again, instead of version 2\n",
        )
        champion = registry.champion()
        assert champion is not None and champion.version == "1"
        again = guidespace("rollback", "--home", served_home)
        assert again.returncode == 2 and len(again.stderr.splitlines()) == 1
        assert "was promoted before version 1; it stays champion" in again.stderr
    finally:
        for day, version in ((6, "2"), (7, "1")):
            registry.promote(version, "back", at=AT + datetime.timedelta(days=day))


def test_serve_without_a_model_recommends_nightly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    worlds.publish_guide(tmp_path / "home", worlds.programmes(5))
    assert main(["serve", "--home", str(tmp_path / "home"), "--port", "0"]) == 2
    assert "has no champion model yet (guidespace-titles); run `guidespace nightly" in capsys.readouterr().err
