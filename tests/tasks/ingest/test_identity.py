"""Sources of feeds: tokens, references, and names of earlier versions."""

import datetime
import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from guides import guide, locations, read, rows

from storage.catalogue.connection import Catalogue
from storage.catalogue.feeds import SOURCE_TABLES
from tasks.ingest.sources.dates import dated_guides
from tasks.ingest.sources.feeds import FeedError, NamedFeed, conceal_secrets
from tasks.ingest.sources.resolve import resolve

OTHER = (
    '<programme channel="one" start="20250301020000 +0000" stop="20250301030000 +0000"><title>'
    "Moved</title></programme>"
)


@pytest.fixture
def address() -> Iterator[str]:
    """URL of a server with a guide of twenty programmes, one of which changes on the second night."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            late = "night=2" in self.path
            self.wfile.write(gzip.compress(guide(*[OTHER] if late else [], programmes=2 if late else 20)))

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/g.xml.gz"
    server.shutdown()
    thread.join()
    server.server_close()


def sources(home: Path) -> list[str]:
    return [row[0] for row in rows(home, "SELECT DISTINCT source FROM feeds ORDER BY 1")]


def current_titles(home: Path) -> list[str]:
    return [
        row[0]
        for row in rows(home, "SELECT title FROM programmes WHERE replaced_by IS NULL ORDER BY start, title")
    ]


def test_a_signed_url_is_one_source_and_replaces_itself(tmp_path: Path, address: str) -> None:
    read(tmp_path, f"{address}?night=1&X-Amz-Signature=aaaa&X-Amz-Expires=1")
    read(tmp_path, f"{address}?night=2&X-Amz-Signature=bbbb&X-Amz-Expires=2")
    assert sources(tmp_path) == [address]
    titles = current_titles(tmp_path)
    assert len(titles) == 20 and "Moved" in titles and "Show 2" not in titles


def test_harmless_parameters_distinguish_feeds(tmp_path: Path, address: str) -> None:
    read(tmp_path, f"{address}?country=de&token=a", f"{address}?country=fr&token=a")
    assert sources(tmp_path) == [f"{address}?country=de", f"{address}?country=fr"]


def test_two_feeds_with_the_same_source_are_refused(tmp_path: Path, address: str) -> None:
    with pytest.raises(FeedError, match=r"g.xml.gz: two URLs differ only in .* use env:NAME") as caught:
        read(tmp_path, f"{address}?user=ann&key=k111", f"{address}?user=bob&key=k222")
    assert not any(secret in str(caught.value) for secret in ("ann", "bob", "k111", "k222"))
    assert sources(tmp_path) == []
    assert locations([f"{address}?key=k111", f"{address}?key=k111"]) == [f"{address}?key=k111"]


def renamed(home: Path, names: dict[str, str]) -> None:
    """Renames sources to the names of an earlier version."""
    with Catalogue.open(home) as catalogue:
        for now, before in names.items():
            for table in ("feeds", "programmes", "channel_history", "validators"):
                catalogue.connection.execute(f"UPDATE {table} SET source = ? WHERE source = ?", [before, now])


@pytest.mark.parametrize(
    "query", ["?token=", "?access_token=aaaa", "?token=&access_token=old1", "?postcode=1&token="]
)
def test_the_history_of_a_former_source_continues(tmp_path: Path, address: str, query: str) -> None:
    tonight = f"{address}?night=2&token=t222&access_token=bbbb&postcode=1"
    read(tmp_path, f"{address}?night=1")
    renamed(tmp_path, {address: address + query})
    read(tmp_path, tonight)
    assert (
        sources(tmp_path) == [address]
        and len(current_titles(tmp_path)) == 20
        and "Moved" in current_titles(tmp_path)
    )
    assert rows(tmp_path, "SELECT DISTINCT source FROM programmes UNION SELECT source FROM validators") == [
        (address,)
    ]


def test_former_sources_are_merged(tmp_path: Path, address: str) -> None:
    former = {
        f"{address}?day=1": "?access_token=a1",
        f"{address}?day=2": "?access_token=a2",
        f"{address}?day=3": "?postcode=2",
    }
    for url in former:
        read(tmp_path, url)
    renamed(tmp_path, {url: address + query for url, query in former.items()})  # the last one is another feed
    assert len(current_titles(tmp_path)) == 60
    read(tmp_path, f"{address}?night=2&access_token=a9&postcode=1")
    assert sources(tmp_path) == [address, f"{address}?postcode=2"]
    mine = "WHERE source NOT LIKE '%postcode%'"
    assert rows(
        tmp_path, f"SELECT count(*), count(*) FILTER (replaced_by IS NULL) FROM programmes {mine}"
    ) == [(41, 20)]
    double = (
        "SELECT channel, start FROM programmes WHERE replaced_by IS NULL AND source NOT LIKE "
        "'%postcode%' GROUP BY ALL HAVING count(*) > 1"
    )
    assert rows(tmp_path, double) == []


def test_a_renamed_source_is_renamed_in_every_table(tmp_path: Path) -> None:
    held = (
        "SELECT table_name FROM duckdb_columns() JOIN duckdb_tables() USING (table_name) WHERE "
        "column_name = 'source'"
    )
    assert {name for (name,) in rows(tmp_path, held)} == {*SOURCE_TABLES, "validators"}


def test_the_source_of_a_variable_is_its_name(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUIDE_ONE", f"{address}?night=1&user=ann&key=k111")
    monkeypatch.setenv("GUIDE_TWO", f"{address}?night=1&user=bob&key=k222")
    outcomes = read(tmp_path, "env:GUIDE_ONE", "env:GUIDE_TWO", "env:GUIDE_ONE")
    assert [(outcome.source, outcome.counts.stored) for outcome in outcomes] == [
        ("env:GUIDE_ONE", 20),
        ("env:GUIDE_TWO", 20),
    ]
    monkeypatch.setenv("GUIDE_ONE", f"{address.replace('g.xml', 'elsewhere.xml')}?night=2&key=new")
    read(tmp_path, "env:GUIDE_ONE")
    assert sources(tmp_path) == ["env:GUIDE_ONE", "env:GUIDE_TWO"]
    assert rows(
        tmp_path, "SELECT count(*) FROM programmes WHERE replaced_by IS NULL AND source = 'env:GUIDE_ONE'"
    ) == [(20,)]


def test_a_url_keeps_its_history_when_it_moves_into_a_variable(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read(tmp_path, f"{address}?night=1&key=k111")
    monkeypatch.setenv("GUIDE_ONE", f"{address}?night=2&key=k222")
    read(tmp_path, "env:GUIDE_ONE")
    assert sources(tmp_path) == ["env:GUIDE_ONE"] and len(current_titles(tmp_path)) == 20


def test_variables_with_paths_and_empty_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.xml").write_bytes(guide(programmes=3))
    monkeypatch.setenv("GUIDES", f" {tmp_path}/*.xml\n")
    assert locations(["env:GUIDES"]) == [str(tmp_path / "a.xml")]
    monkeypatch.setenv("GUIDES", "")
    for name in ("env:GUIDES", "env:NO_SUCH_VARIABLE"):
        with pytest.raises(FeedError, match=f"{name}: this environment variable is not set, or empty"):
            resolve([name])
    with pytest.raises(FeedError, match="secret:guide: Secret blocks of Prefect are only opened by nightly"):
        resolve(["secret:guide"])


def test_concealed_feeds_are_resolved(address: str) -> None:
    full_url = f"https://ann:k111@example.org/g.xml?key=k222&country=de&seen={address}"
    assert conceal_secrets([full_url, "guides/*.xml"]) == [
        "https://example.org/g.xml?country=de",
        "guides/*.xml",
    ]
    assert locations(conceal_secrets([full_url])) == [full_url]
    assert "k111" not in repr(NamedFeed(location=full_url, source="env:X"))


@pytest.mark.parametrize(
    "url",
    [
        "http://ann:k111@[::bad/", "http://ann:k1/11@example.org/g.xml",
        "http://ann:k111@host:port/?key=k111", "https:///g",
        "https:/ann:k111@host/?key=k111", "http//ann:k111@host/*.xml",
    ],
)  # fmt: skip
def test_invalid_urls_give_one_line(tmp_path: Path, url: str) -> None:
    with pytest.raises(FeedError, match="not a valid URL; expected one such as https://") as caught:
        read(tmp_path, url)
    assert "k1" not in str(caught.value) and "\n" not in str(caught.value) and "11@" not in str(caught.value)


def test_errors_of_patterns_contain_no_credentials(tmp_path: Path) -> None:
    pytest.importorskip("s3fs", reason="s3fs is not installed: pip install s3fs")
    for url in ("s3://AKIAKEY:k111@bucket/*.xml", "s3://AKIAKEY:k1%2F11@bucket/*.xml"):
        with pytest.raises(FeedError, match=r"^s3://bucket/\*.xml: cannot be listed \(\w+\)$") as caught:
            read(tmp_path, url)
        hidden = caught.value.__suppress_context__ or caught.value.__context__ is None
        assert caught.value.__cause__ is None and hidden


def test_sources_of_dated_guides_contain_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    first, last = datetime.date(2025, 3, 1), datetime.date(2025, 3, 31)
    url = "https://ann:k111@example.org/guide-2025-03-02.xml.gz?key=k222"
    (guide,) = dated_guides([url], first, last, datetime.UTC)
    assert (
        guide.source == "https://example.org/guide-{date}.xml.gz"
        and "k111@" in guide.location
        and "k111" not in repr(guide)
    )


def test_double_star_visits_each_folder_once(tmp_path: Path) -> None:
    guides = tmp_path / "guides"
    (guides / "fr").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    for place in (
        guides / "a.xml",
        guides / "fr" / "b.xml",
        tmp_path / "elsewhere" / "c.xml",
        guides / ".d" / "d.xml",
    ):
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(guide(programmes=1))
    for link, target in (
        (guides / "aa", guides),
        (guides / "fr" / "up", guides),
        (guides / "fr" / "fr2", guides / "fr"),
        (guides / "far", tmp_path / "elsewhere"),
    ):
        link.symlink_to(target)
    (guides / "latest.xml").symlink_to(guides / "a.xml")  # a file of another name is another source
    every = [str(guides / name) for name in ("a.xml", "far/c.xml", "fr/b.xml", "latest.xml")]
    assert locations([f"{guides}/**/*.xml"]) == every
    assert locations([f"{guides}/**"]) == every
    below_fr = ["fr/b.xml", "fr/up/a.xml", "fr/up/far/c.xml", "fr/up/latest.xml"]
    assert locations([f"{guides}/**/fr/**/*.xml"]) == [str(guides / name) for name in below_fr]
    assert locations([f"{tmp_path}/g*/**/b.xml"]) == [str(guides / "fr" / "b.xml")]
