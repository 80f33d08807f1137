"""Facts of programmes as tokens: the same in the nightly run and for titles of a guide to enrich."""

import hashlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from storage.catalogue.connection import temporary_database
from storage.home.workspace import Workspace
from tasks.enrich.settings import EnrichOptions
from tasks.enrich.source import open_source
from tasks.enrich.survey import read_survey
from tasks.ingest.publish import read_and_publish
from tasks.ingest.settings import IngestSettings
from tasks.text.words import FACT_KINDS
from tasks.tokenize.contexts import write_contexts

GUIDE = """<?xml version="1.0" encoding="UTF-8"?>
<tv><channel id="one"><display-name>One</display-name></channel>
<programme start="20260901200000 +0000" stop="20260901220000 +0000" channel="one"><title>Stalker</title>
<credits><director>Andrei Tarkovsky</director><actor>Alisa Freindlich</actor></credits><date>19790525</date>
<category>Secret</category><keyword>The Zone</keyword><orig-language>ru</orig-language>
<length units="minutes">162</length><country>Soviet Union</country>
<rating system="MPAA"><value>PG</value></rating></programme>
<programme start="20260901220000 +0000" stop="20260901230000 +0000" channel="one"><title>Talk</title>
<credits><presenter>Andrei Tarkovsky</presenter></credits><date>2026</date>
<episode-num system="xmltv_ns">0.1.</episode-num></programme>
<programme start="20260901230000 +0000" stop="20260902000000 +0000" channel="one">
<title>Bare</title></programme>
</tv>"""


def hashed(name: str) -> str:
    return hashlib.md5(name.lower().encode()).hexdigest()[:16]


TARKOVSKY, FREINDLICH = hashed("Andrei Tarkovsky"), hashed("Alisa Freindlich")
EXPECTED = {
    "Stalker": {
        f"person:{TARKOVSKY}",
        f"person:director:{TARKOVSKY}",
        f"person:{FREINDLICH}",
        f"person:actor:{FREINDLICH}",
        "country:soviet union",
        "date:decade:1970",
        "date:year:1979",
        "rating:pg",
        "keyword:the zone",
        "original_language:ru",
        "length:180",
    },
    "Talk": {f"person:{TARKOVSKY}", f"person:presenter:{TARKOVSKY}", "date:decade:2020"},
    "Bare": set(),
}


def published(file: Path, work: Path) -> Path:
    guide = read_and_publish(Workspace(work), [str(file)], IngestSettings(), None, lambda event: None)
    return work / guide.path


def surveyed(file: Path, work: Path) -> Path:
    with open_source(str(file), work, IngestSettings()) as source:
        read_survey(source, work, EnrichOptions())
    return work


@pytest.mark.parametrize("read", [published, surveyed])
def test_facts_are_tokens_and_names_are_hashed(tmp_path, read):
    file, work = tmp_path / "guide.xml", tmp_path / "work"
    file.write_text(GUIDE, encoding="utf-8")
    work.mkdir()
    guide, variants, path = read(file, work), tmp_path / "variants.parquet", tmp_path / "contexts.parquet"
    titles = list(EXPECTED)
    pq.write_table(pa.table({"raw_title": titles, "title_id": pa.array(range(3), pa.int32())}), variants)
    with temporary_database(tmp_path) as connection:
        write_contexts(connection, guide=guide, variants=variants, kinds=FACT_KINDS, path=path)
    tokens: dict[str, set[str]] = {title: set() for title in titles}
    for row in pq.read_table(path).to_pylist():
        assert row["kind"] == row["token"].partition(":")[0]
        tokens[titles[row["title_id"]]].add(row["token"])
    assert tokens == EXPECTED
