"""A stage runs again only if inputs, settings, code or packages change, or its folder is damaged."""

import ast
import inspect
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from prefect.filesystems import LocalFileSystem
from prefect.results import ResultStore

from storage import stages
from storage.artifacts import Artifact, Corpus, Guide, Vocabulary
from storage.home.workspace import Workspace
from storage.stages import Stage, fingerprint, import_closure
from tasks.optimizers import SGD, Adam
from tasks.preprocess.settings import PreprocessSettings
from tasks.sentences.static import Model2Vec
from tasks.text.words import Words
from tasks.tokenize.settings import TokenizeSettings
from tasks.train.settings import TrainSettings

TREE = {
    "tasks/__init__.py": "",
    "tasks/a/__init__.py": '"""Room a."""',
    "tasks/a/task.py": "import json\nfrom prefect import task\nfrom tasks.a import work\n",
    "tasks/a/work.py": "import numpy as np\nfrom storage.deep import thing\n\n"
    "def late():\n    import tasks.b.other\n",
    "tasks/a/list.txt": "a list that the code reads",
    "tasks/a/notes.md": "nobody's",
    "tasks/b/__init__.py": "",
    "tasks/b/other.py": "from typing import Any\nimport lxml.etree\n",
    "tasks/b/unrelated.py": "import tasks.a.work\n",
    "storage/__init__.py": "",
    "storage/deep.py": "from storage import deeper\nthing = 1\n",
    "storage/deeper.py": "",
}


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Small project with the folders of ours; the stage is tasks/a/task.py."""
    root = tmp_path / "checkout"
    for name, text in TREE.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(stages, "ROOT", root)
    stages._executed_files.cache_clear()
    yield root
    stages._executed_files.cache_clear()


def print_of(root: Path) -> str:
    for kept in (fingerprint, stages._executed_files, stages._imported_names, stages._source_bytes):
        kept.cache_clear()
    return fingerprint(str(root / "tasks/a/task.py"))


def test_the_closure_follows_imports_of_imports(tree: Path):
    files, packages = import_closure(tree / "tasks/a/task.py")
    found = {path.relative_to(tree).as_posix() for path in files}
    assert found == {
        "tasks/__init__.py",
        "tasks/a/__init__.py",
        "tasks/a/task.py",
        "tasks/a/work.py",
        "tasks/b/__init__.py",
        "tasks/b/other.py",
        "storage/__init__.py",
        "storage/deep.py",
        "storage/deeper.py",
    }
    assert packages == {"prefect", "numpy", "lxml"}


def test_imports_are_matched_as_python_parses_them():
    files = [file for name in stages.PACKAGES for file in sorted((stages.ROOT / name).rglob("*.py"))]
    assert len(files) > 300
    for file in files:
        parsed: set[str] = set()
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.Import):
                parsed.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                parsed |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        assert stages._imported_names(file) == parsed, file


REACHED = ["tasks/__init__.py", "tasks/a/task.py", "tasks/a/list.txt", "tasks/b/other.py"]
REACHED += ["storage/deeper.py"]


@pytest.mark.parametrize("name", [*REACHED, "tasks/b/unrelated.py", "tasks/a/notes.md"])
def test_only_imported_code_is_part_of_the_key(tree: Path, name: str):
    before = print_of(tree)
    (tree / name).write_text((tree / name).read_text(encoding="utf-8") + "\n# changed\n", encoding="utf-8")
    assert (print_of(tree) != before) is (name in REACHED)


def test_the_path_of_the_checkout_is_not_part_of_the_key(tree: Path, monkeypatch: pytest.MonkeyPatch):
    before = print_of(tree)
    moved = tree.rename(tree.with_name("elsewhere"))
    monkeypatch.setattr(stages, "ROOT", moved)
    assert print_of(moved) == before


def test_versions_of_packages_are_part_of_the_key(tree: Path, monkeypatch: pytest.MonkeyPatch):
    before = print_of(tree)
    monkeypatch.setattr(stages, "_version", lambda package: "9.9" if package == "lxml" else "1.0")
    assert print_of(tree) != before


def test_the_closure_of_a_stage_contains_its_libraries():
    files, packages = import_closure(stages.ROOT / "tasks/tokenize/task.py")
    names = {path.relative_to(stages.ROOT).as_posix() for path in files}
    assert {
        "tasks/text/titles.py",
        "tasks/tokenize/splits.py",
        "storage/catalogue/connection.py",
        "storage/home/workspace.py",
    } <= names
    assert {"duckdb", "pyarrow", "numpy", "prefect"} <= packages
    assert not any(name.startswith(("flows/", "tasks/train/", "storage/tracking")) for name in names)


def tasks_with_a_cache_key() -> Iterator[ast.FunctionDef]:
    for file in stages.ROOT.glob("tasks/**/task.py"):
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.FunctionDef) and any(
                ".options" in ast.unparse(decorator) for decorator in node.decorator_list
            ):
                yield node


def test_tasks_publish_with_the_inputs_of_their_cache_key():
    """Otherwise, the published artifact would never be reused."""
    tasks = list(tasks_with_a_cache_key())
    assert len(tasks) == 14
    for task in tasks:
        calls = [node for node in ast.walk(task) if isinstance(node, ast.Call)]
        (publish,) = (call for call in calls if ast.unparse(call.func).endswith(".publish"))
        parameters = [parameter.arg for parameter in task.args.args]
        inputs = [name for name in parameters if name not in stages.PARAMETERS_NOT_IN_KEY]
        assert [ast.unparse(argument) for argument in publish.args] == ["home", *inputs], task.name


STAGE = Stage(Corpus, str(stages.ROOT / "tasks/preprocess/task.py"))
GUIDE = Guide(path="artifacts/guide/a", digest="aa", counts={"programmes": 1})


def test_only_the_digest_of_an_artifact_is_part_of_the_key():
    key = STAGE.key(GUIDE, TokenizeSettings())
    assert len(key) == 32 and key == STAGE.key(GUIDE, TokenizeSettings())
    assert key == STAGE.key(replace(GUIDE, path="artifacts/guide/b", counts={}), TokenizeSettings())
    assert key != STAGE.key(replace(GUIDE, digest="bb"), TokenizeSettings())
    assert key != STAGE.key(Vocabulary(path="artifacts/guide/a", digest="aa"), TokenizeSettings())
    assert key != Stage(Vocabulary, STAGE.file).key(GUIDE, TokenizeSettings())


def test_nested_settings_are_part_of_the_key():
    keys = {
        STAGE.key(GUIDE, settings)
        for settings in (
            TokenizeSettings(),
            TokenizeSettings(weight_exponent=0.3),
            TokenizeSettings(tokenizer=Words()),
            replace(TokenizeSettings(), splits=replace(TokenizeSettings().splits, salt="other")),
            PreprocessSettings(),
            TrainSettings(optimizer=SGD()),
            TrainSettings(optimizer=Adam()),
            TrainSettings(optimizer=Adam(beta1=0.8)),
        )
    }
    assert len(keys) == 8


def test_plain_values_and_lists_can_be_inputs():
    assert STAGE.key([1, 2], {"a": None}, Path("x"), True) != STAGE.key([2, 1], {"a": None}, Path("x"), True)
    assert STAGE.key((1, 2)) == STAGE.key([1, 2])


def test_data_cannot_be_an_input():
    with pytest.raises(ValueError, match="a stage has an input of type set; inputs must be artifacts"):
        STAGE.key({1, 2})


@pytest.fixture
def results(tmp_path: Path) -> ResultStore:
    """Folder of Prefect's results, which homes share."""
    return ResultStore(result_storage=LocalFileSystem(basepath=str(tmp_path / "results")))


def found(results: ResultStore, home: Path, **parameters: object) -> Artifact | None:
    """Returns the artifact that Prefect uses instead of a run of the stage; None if the stage runs."""
    make: Callable[..., str | None] = STAGE.options["cache_key_fn"]
    given = {"home": str(home), "guide": GUIDE, "settings": PreprocessSettings(), **parameters}
    key = make(SimpleNamespace(result_store=results), given)
    return None if key is None else results.read(key).result


def publish(home: Path, content: str = "content") -> Corpus:
    with STAGE.publish(home, GUIDE, PreprocessSettings()) as draft:
        (draft.folder / "file.txt").write_text(content, encoding="utf-8")
    return draft.artifact


def test_a_published_result_is_used_without_a_record_of_prefect(tmp_path: Path, results: ResultStore):
    assert found(results, tmp_path) is None
    made = publish(tmp_path)
    assert found(results, tmp_path) == made == found(results, tmp_path)


def test_the_run_that_reports_is_not_part_of_the_key(tmp_path: Path, results: ResultStore):
    made = publish(tmp_path)
    assert found(results, tmp_path, run="0123") == made
    assert found(results, tmp_path, settings=PreprocessSettings(minimum_titles=1)) is None


def test_a_damaged_result_is_not_used_until_it_is_published_again(tmp_path: Path, results: ResultStore):
    made = publish(tmp_path)
    assert found(results, tmp_path) == made
    file = tmp_path / made.path / "file.txt"
    file.write_text("damaged", encoding="utf-8")
    assert found(results, tmp_path) is None
    file.unlink()
    assert found(results, tmp_path) is None
    assert publish(tmp_path, "mended") == found(results, tmp_path) != made


def test_homes_do_not_share_results(tmp_path: Path, results: ResultStore):
    made = [publish(tmp_path / name, content=name) for name in "ab"]
    assert made[0].path == made[1].path
    assert [found(results, tmp_path / name) for name in "abab"] == [*made, *made]


def test_parameters_of_tasks_are_in_the_order_of_the_inputs(learnt, results: ResultStore):
    """The order of a task's parameters is the order of its inputs: else a hit would verify another folder."""
    from tasks.augment.task import augment
    from tasks.preprocess.task import preprocess
    from tasks.tokenize.task import tokenize
    from tests.worlds import AUGMENTING, TRAINING

    home, guide, vocabulary, corpus, checkpoint, encoder = learnt
    calls = [
        (tokenize, vocabulary, (guide, TokenizeSettings())),
        (preprocess, corpus, (guide, vocabulary, TokenizeSettings().splits.salt, PreprocessSettings())),
        (augment, encoder, (vocabulary, corpus, checkpoint, TRAINING.encoder, AUGMENTING)),
    ]
    for task, made, arguments in calls:
        bound = inspect.signature(task.fn).bind(str(home), *arguments)
        bound.apply_defaults()  # as Prefect does
        parameters = bound.arguments
        key = task.cache_key_fn(SimpleNamespace(result_store=results), parameters)
        assert key and results.read(key).result == made, task.name
        assert Workspace(home).read(type(made), made.path.split("/")[-1]) == made


def test_the_content_of_a_model_file_is_part_of_the_key_but_not_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    stage = Stage(Vocabulary, __file__)
    for name in "ab":
        (tmp_path / name).write_text("model", encoding="utf-8")
    first = stage.key(Model2Vec(model=str(tmp_path / "a")))
    assert stage.key(Model2Vec(model=str(tmp_path / "b"))) == first
    (tmp_path / "a").write_text("another model", encoding="utf-8")
    assert stage.key(Model2Vec(model=str(tmp_path / "a"))) != first
