"""Fixtures: a model of the toy world, and a function that fills guides."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from storage.home.corrections import Correction
from tests import worlds


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a Model of three categories with 105 held-out titles. Read only."""
    from prefect.logging import disable_run_logger

    from tasks.embed.task import embed
    from tasks.predictor.task import fit_linear
    from tasks.publish.task import pack

    home = tmp_path_factory.mktemp("enrich") / "home"
    with disable_run_logger():
        _, vocabulary, corpus = worlds.publish_corpus(home, worlds.programmes(200))
        _, encoder = worlds.learn(home, vocabulary, corpus)
        inputs = corpus, encoder, embed.fn(str(home), corpus, encoder), fit_linear.fn(str(home), corpus)
        return home / pack.fn(str(home), *inputs).path


@pytest.fixture
def fill(model: Path, tmp_path: Path) -> Callable:
    """Function that fills a guide; returns the output and the report."""
    from tasks.enrich.enrich import open_enricher, read_guide
    from tasks.enrich.model import CategoryModel
    from tasks.enrich.settings import EnrichOptions
    from tasks.enrich.source import open_source
    from tasks.ingest.settings import IngestSettings

    def fill_(
        content: bytes | Path,
        folder: Path = model,
        home_guide: Path | None = None,
        corrections: Mapping[str, Correction] | None = None,
        **options,
    ):
        file = content if isinstance(content, Path) else tmp_path / "in.xml"
        if isinstance(content, bytes):
            file.write_bytes(content)
        work = tmp_path / "work"
        work.mkdir(exist_ok=True)
        chosen = EnrichOptions(**options)
        with open_source(str(file), work, IngestSettings()) as source:
            read = read_guide(source, work, chosen)
            enricher = open_enricher(source, *read, CategoryModel(folder, corrections), chosen, home_guide)
            written = b"".join(enricher.pieces())
            return written, enricher.report

    return fill_
