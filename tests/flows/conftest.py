"""One home that a smoke run of the sample guide filled, made once a process."""

import pytest

from tests.flows.command import SAMPLE, guidespace


@pytest.fixture(scope="session")
def night(tmp_path_factory):
    home = tmp_path_factory.mktemp("command") / "home"
    done = guidespace("nightly", "--feed", SAMPLE, "--home", home, "--preset", "smoke")
    assert done.returncode == 0, done.stdout + done.stderr
    return home, done.stdout
