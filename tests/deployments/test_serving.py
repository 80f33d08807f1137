"""The served model: in this process, and by ``mlflow models serve`` where no checkout can be imported."""

import itertools
import json
import subprocess
import sys
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
import numpy as np
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from storage.tracking import MODEL_NAME, Registry, Tracking
from tasks.augment.distilled import Distilled
from tasks.encoder.bag import Bag
from tasks.encoder.meaning import Meaning
from tasks.encoder.title_encoder import TitleEncoder
from tasks.publish.registry.task import MODEL_CODE
from tasks.text.titles import parse_title
from tasks.text.words import KINDS, WORD, Words
from tests.ports import free_port
from tests.servers import is_healthy, running, wait_for

# Vectors are mapped read only; PyTorch says once that it could not keep anyone from writing.
pytestmark = pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")
# Two corners of a small guide: whoever asks for food gets food.
KITCHEN = ("Baking Tonight", "The Soup Hour", "Kitchen Quest", "Bread and Butter", "Market Cooking")
STADIUM = ("Football Final", "Goal of the Week", "Stadium Live", "Penalty Shootout", "Cup Football")


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Model folder as the publish stage writes it, of ten titles in eight dimensions."""
    from tasks.sentences import UniversalSentenceEncoder

    folder = tmp_path_factory.mktemp("model") / "files"
    folder.mkdir()
    titles = KITCHEN + STADIUM
    tokenizer = Words()
    words = sorted({token for title in titles for kind, token in tokenizer.tokens(title) if kind == WORD})
    generator = np.random.default_rng(7)
    rows = 0.2 * generator.standard_normal((len(words), 8)).astype(np.float32)
    for row, word in enumerate(words):
        rows[row, 0 if any(word in tokenizer_words(title) for title in KITCHEN) else 1] += 1
    kinds = np.full(len(words), WORD, dtype=np.int8)
    tokens = folder.parent / "tokens.parquet"
    pq.write_table(pa.table({"kind": [KINDS[WORD]] * len(words), "token": words}), tokens)
    ngrams = Distilled(buckets=5000).fit(words, rows, np.ones(len(words), dtype=np.int64))
    sentences = UniversalSentenceEncoder().open()
    dense = sentences.encode(titles)
    layer = 0.01 * generator.standard_normal((8, sentences.dim)).astype(np.float32)
    about = {"encoder": {"name": "use"}, "identity": sentences.identity}
    ids, meaning = {(WORD, word): row for row, word in enumerate(words)}, Meaning.fit(about, layer, [dense])
    encoder = TitleEncoder(tokenizer, Bag(sentence=0.5), ids, rows, kinds, ngrams, meaning)
    encoder.save(folder, tokens)
    context = ["channel:one", "channel:word:one", "hour:20"]
    vectors = encoder.embed_with_context(titles, [context] * len(titles), dense)
    for name, own in zip(("similarity_alone", "similarity"), vectors, strict=True):
        np.save(folder / f"{name}.npy", encoder.similarity(dense, own))
    np.save(folder / "dense.npy", dense.astype(np.float16))
    labels = [["cooking"]] * len(KITCHEN) + [["sports", "live"]] * len(STADIUM)
    columns = {
        "title": list(titles),
        "show_key": [parse_title(title).show_key for title in titles],
        "labels": labels,
        "channels": [["One", "Two HD"]] * len(titles),
        "raw_title": list(titles),
        "airings": [1] * len(titles),
        "context": [context] * len(titles),
    }
    pq.write_table(pa.table(columns), folder / "titles.parquet")
    return folder


def tokenizer_words(title: str) -> set[str]:
    return {token for _, token in Words().tokens(title)}


@pytest.fixture(scope="module")
def context(model_folder: Path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # MLflow warns of its own type hints while it is imported
        from mlflow.pyfunc.model import PythonModelContext
    return PythonModelContext(artifacts={"model": str(model_folder)}, model_config=None)


@pytest.fixture(scope="module")
def model(context):
    from deployments.title_model import TitleModel

    model = TitleModel()
    model.load_context(context)
    return model


def test_neighbours_are_of_the_same_category(model, context) -> None:
    answer = model.predict(context, pandas.DataFrame({"title": ["Baking Tonight", "Footballers"]}), {"k": 4})
    assert answer["title"].tolist() == ["Baking Tonight", "Footballers"]
    known, unseen = answer["neighbours"]
    assert {neighbour["title"] for neighbour in known} == set(KITCHEN) - {"Baking Tonight"}
    assert {neighbour["title"] for neighbour in unseen} <= set(STADIUM)
    assert known[0].keys() == {"title", "cosine", "categories", "channels", "editions", "kinds"}
    assert known[0]["categories"] == ["cooking"] and known[0]["channels"] == ["One", "Two HD"]
    assert all(first["cosine"] >= second["cosine"] for first, second in itertools.pairwise(known))


def test_ten_neighbours_by_default_and_no_answers_for_no_titles(model, context) -> None:
    (neighbours,) = model.predict(context, pandas.DataFrame({"title": ["Something Cooking"]}))["neighbours"]
    assert len(neighbours) == 10
    assert len(model.predict(context, pandas.DataFrame({"title": []}))) == 0


@pytest.mark.parametrize(
    ("frame", "k", "message"),
    [
        ({"name": ["Baking Tonight"]}, 3, r"expected a column 'title', got \['name'\]"),
        ({"title": ["Baking Tonight"]}, 0, "from 1 to 1000"),
        ({"title": ["Baking Tonight"]}, 1001, "from 1 to 1000"),
        ({"title": ["Baking Tonight", None]}, 3, "row 1: expected a non-empty string as title"),
        ({"title": ["  "]}, 3, "row 0: expected a non-empty string as title"),
        ({"title": ["Baking Tonight"], "channel": [7.0]}, 3, "row 0: expected a string as channel, got 7.0"),
    ],
)
def test_invalid_requests_get_status_400_and_an_explanation(
    model, context, frame: dict, k: int, message: str
) -> None:
    with pytest.raises(Exception, match=message) as caught:
        model.predict(context, pandas.DataFrame(frame), {"k": k})
    assert caught.value.get_http_status_code() == 400


def test_a_title_without_known_tokens_does_not_affect_others(model, context) -> None:
    answer = model.predict(context, pandas.DataFrame({"title": ["ᎣᏏᏲ", "Baking Tonight"]}), {"k": 3})
    unknown, known = answer.to_dict("records")
    assert unknown["neighbours"] is None
    assert unknown["reason"].startswith("nothing is known of the title 'ᎣᏏᏲ'")
    assert len(known["neighbours"]) == 3 and known["reason"] is None


def test_rows_may_contain_descriptions_channels_and_hours(model, context) -> None:
    rows = {
        "title": ["Saturday"] * 5,
        "description": ["A chef bakes bread.", "Two football clubs play in a stadium.", None, "", None],
        "channel": [None, "", None, "Won", "two hd"],
        "hour": [float("nan"), 20, 24, None, None],
    }
    answer = model.predict(context, pandas.DataFrame(rows), {"k": 3})
    (baking, match, *refused, aired), reasons = answer["neighbours"], answer["reason"]
    assert {near["title"] for near in baking} <= set(KITCHEN)
    assert {near["title"] for near in match} <= set(STADIUM)
    assert refused == [None, None] and len(aired) == 3
    assert reasons[2] == "the hour must be a whole number from 0 to 23, got 24"
    assert reasons[3] == "the guide has no channel 'Won'; similar names are one"


def test_unknown_parameters_are_refused(model, context) -> None:
    with pytest.raises(Exception, match=r"unknown parameters \['count'\]; expected \['k'\]"):
        model.predict(context, pandas.DataFrame({"title": ["Baking Tonight"]}), {"k": 3, "count": 5})


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns an environment with our libraries but without our checkout.

    A path in a .pth file adds the folder, but not the .pth files in it: the editable installation stays
    behind.
    """
    place = tmp_path_factory.mktemp("elsewhere") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    (site,) = place.glob("lib/python*/site-packages")
    (site / "libraries.pth").write_text(str(Path(np.__file__).parent.parent) + "\n", encoding="utf-8")
    uvicorn = place / "bin" / "uvicorn"  # MLflow starts it by name
    uvicorn.write_text(f'#!/bin/sh\nexec {place}/bin/python -m uvicorn "$@"\n', encoding="utf-8")
    uvicorn.chmod(0o755)
    return place


@pytest.fixture(scope="module")
def server(elsewhere: Path, model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of ``mlflow models serve`` on the champion of a home, its log shown if it does not come up."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        tracking, registry = Tracking(home), Registry(home, MODEL_CODE)
        run_id = tracking.start_run("flow-1", "friday")
        version = registry.register(
            run_id, model_folder, "digest-1", example_title=KITCHEN[0], lineage="salt-1"
        )
        registry.promote(version, "the first", at=datetime(2026, 11, 21, tzinfo=UTC))
        tracking.end_run(run_id)
    port = free_port()
    environment = {
        "PATH": f"{elsewhere / 'bin'}:/usr/bin:/bin", "HOME": str(home), "PYTHONPATH": "",
        "OMP_NUM_THREADS": "1",
        "MLFLOW_TRACKING_URI": tracking.mlflow.uri, "MLFLOW_DISABLE_TELEMETRY": "true",
    }  # fmt: skip
    probe = subprocess.run(
        [elsewhere / "bin" / "python", "-c", "import torch, mlflow, tasks"],
        cwd=home,
        env=environment,
        capture_output=True,
        encoding="utf-8",
    )
    assert "No module named 'tasks'" in probe.stderr
    command = [elsewhere / "bin" / "python", "-m", "mlflow", "models", "serve", "--env-manager", "local"]
    command += ["-m", f"models:/{MODEL_NAME}@champion", "--host", "127.0.0.1", "-p", str(port)]
    log = home / "serve.log"
    url = f"http://127.0.0.1:{port}"
    with running(command, log, environment, home):
        wait_for(lambda: is_healthy(f"{url}/ping"), 120, lambda: log.read_text(encoding="utf-8"))
        yield url


def ask(url: str, content: object) -> tuple[int, str]:
    """Sends a request; returns the status and body of the answer."""
    response = httpx.post(url, json=content, timeout=30)
    return response.status_code, response.text


def request_for(*titles: str, **params: object) -> dict:
    return {"dataframe_split": {"columns": ["title"], "data": [[title] for title in titles]}} | (
        {"params": params} if params else {}
    )


@pytest.mark.slow
def test_mlflow_serves_the_model_in_another_folder(server: str) -> None:
    status, body = ask(f"{server}/invocations", request_for("Baking Tonight", "Footballers", k=3))
    assert status == 200, body
    known, unseen = json.loads(body)["predictions"]
    assert known["title"] == "Baking Tonight" and len(known["neighbours"]) == 3
    assert {neighbour["title"] for neighbour in known["neighbours"]} < set(KITCHEN)
    assert {neighbour["title"] for neighbour in unseen["neighbours"]} < set(STADIUM)
    assert known["neighbours"][0].keys() == {"title", "cosine", "categories", "channels", "editions", "kinds"}
    assert known["neighbours"][0]["channels"] == ["One", "Two HD"]
    columns = ["title", "description", "hour"]
    rows = [["x", "A chef cooks", 20], ["Baking Tonight", None, None], ["ᎣᏏᏲ", None, None]]
    status, body = ask(f"{server}/invocations", {"dataframe_split": {"columns": columns, "data": rows}})
    assert status == 200, body
    described, known, unknown = json.loads(body)["predictions"]
    assert len(described["neighbours"]) == 10 and known["reason"] is None
    assert unknown["neighbours"] is None and "nothing is known" in unknown["reason"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (request_for("Baking Tonight", k=0), "from 1 to 1000"),
        (request_for("Baking Tonight", k=3, count=5), "unknown parameters ['count']; expected ['k']"),
    ],
)
def test_a_bad_request_is_answered_400(server: str, content: dict, message: str) -> None:
    status, body = ask(f"{server}/invocations", content)
    assert status == 400
    assert message in json.loads(body)["message"]
