"""Fixtures shared by all tests."""

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.shapes import check_shapes

os.environ["TZ"] = "UTC"  # of homes that tests make
check_shapes()  # before anything imports the rooms that it checks

from storage.artifacts import Checkpoint, Corpus, Guide, TitleEncoderFiles, Vocabulary  # noqa: E402
from tests import worlds  # noqa: E402
from tests.servers import prefect_server  # noqa: E402

CHROMIUM = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
MARKED = {
    "gpu": "a CUDA device (pytest -m gpu)",
    "soak": "`make soak`",
    "slow": "`make slow`",
}  # of a test with two, the first
MISSING = {
    "GUIDESPACE_DATA": "real guides (GUIDESPACE_DATA)",
    "Chromium": "Chromium",
    "CUDA": "a CUDA device",
    "Kodi": "Kodi",
    "PostgreSQL": "PostgreSQL",
    "fasttext": "the fastText package",
    "xmltv-util": "xmltv-util",
}
WAITING = pytest.StashKey[Counter[str]]()


settings.register_profile("any machine", deadline=None)  # the default of 200 ms fails on a busy one
settings.load_profile("any machine")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[WAITING] = Counter()


def pytest_deselected(items: list[pytest.Item]) -> None:
    for item in items:
        if mark := next((name for name in MARKED if item.get_closest_marker(name)), None):
            item.config.stash[WAITING][MARKED[mark]] += 1


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(
        session.config, "workeroutput"
    ):  # a process of pytest-xdist: what it left out it tells the one that reports
        session.config.workeroutput["waiting"] = dict(session.config.stash[WAITING])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    node.config.stash[WAITING] = Counter(
        getattr(node, "workeroutput", {}).get("waiting", {})
    )  # every process collects all tests


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Prints what the tests that did not run need."""
    waiting = Counter(config.stash[WAITING])
    for report in terminalreporter.stats.get("skipped", []):
        reason = str(report.longrepr[2]).removeprefix("Skipped: ")
        waiting[next((words for key, words in MISSING.items() if key in reason), reason)] += 1
    if waiting:
        terminalreporter.section("tests that wait", sep="-")
    for what, count in waiting.most_common():
        terminalreporter.write_line(f"{count:5} for {what}")


@pytest.fixture(scope="session")
def guidespace_data() -> Path:
    """Folder of real guides; a test that asks for it is skipped where there is none."""
    folder = os.environ.get("GUIDESPACE_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("GUIDESPACE_DATA names no folder of real guides")
    return Path(folder)


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of the machine's own Chromium or Chrome; a test that asks for it is skipped where there is
    none."""
    found = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if found is None:
        pytest.skip(f"needs Chromium: none of {', '.join(CHROMIUM)} is in the PATH (apt install chromium)")
    return found


@pytest.fixture(scope="module")
def launched(chromium: str) -> Iterator[Any]:
    """A Browser of Playwright; for a module alone, since only one may run at a time, and nothing of Prefect's
    beside it."""
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install -e '.[dev]'"
    )
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        yield browser
        browser.close()


@pytest.fixture
def without_run() -> Iterator[Callable[..., Any]]:
    """Calls a task's function without a Prefect run: ``without_run(tokenize, home, guide, settings)``."""
    import prefect.main  # noqa: F401  (sets logging up, which would turn the run's logger on again)
    from prefect.logging import disable_run_logger

    with disable_run_logger():
        yield lambda task, *arguments, **named: task.fn(*arguments, **named)


@pytest.fixture(scope="session")
def prefect_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a Prefect server for all tests of this process."""
    with prefect_server(tmp_path_factory.mktemp("prefect")) as url:
        yield url


@pytest.fixture
def prefect_api(prefect_url: str) -> Iterator[str]:
    """URL of the API that flows of this process use during the test; other tests use the server, too."""
    from prefect.context import _temporary_global_settings_context, get_settings_context
    from prefect.logging.handlers import APILogWorker
    from prefect.settings import PREFECT_API_URL, temporary_settings

    with (
        temporary_settings({PREFECT_API_URL: f"{prefect_url}/api"}),
        _temporary_global_settings_context(get_settings_context()),
    ):
        yield f"{prefect_url}/api"
        APILogWorker.drain_all(timeout=10)


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Guide, Vocabulary, Corpus]:
    """The toy world of worlds.py in a home: (home, guide, vocabulary, corpus). Read only."""
    home = tmp_path_factory.mktemp("toy") / "home"
    return home, *worlds.publish_corpus(home, worlds.programmes())


@pytest.fixture(scope="session")
def toy_corpus(toy: tuple[Path, Guide, Vocabulary, Corpus]) -> Path:
    """Folder of the toy world's Corpus. Read only."""
    home, _, _, corpus = toy
    return home / corpus.path


@pytest.fixture(scope="session")
def learnt(
    toy: tuple[Path, Guide, Vocabulary, Corpus],
) -> tuple[Path, Guide, Vocabulary, Corpus, Checkpoint, TitleEncoderFiles]:
    """The toy world, learnt: (home, guide, vocabulary, corpus, checkpoint, encoder). Read only."""
    from prefect.logging import disable_run_logger

    home, guide, vocabulary, corpus = toy
    with disable_run_logger():
        checkpoint, encoder = worlds.learn(home, vocabulary, corpus)
    return home, guide, vocabulary, corpus, checkpoint, encoder


@pytest.fixture(scope="session")
def toy_model(learnt: tuple[Path, Guide, Vocabulary, Corpus, Checkpoint, TitleEncoderFiles]) -> Path:
    """The toy world as a Model folder, by the stages themselves. Read only."""
    from prefect.logging import disable_run_logger

    from tasks.embed.task import embed
    from tasks.predictor.task import fit_linear
    from tasks.publish.task import pack

    home, _, _, corpus, _, encoder = learnt
    with disable_run_logger():
        vectors, linear = embed.fn(str(home), corpus, encoder), fit_linear.fn(str(home), corpus)
        return home / pack.fn(str(home), corpus, encoder, vectors, linear).path
