import resource
import subprocess
import sys
from pathlib import Path

import pytest
from guides import guide, only, read, rows

PROGRAMME = '<programme channel="{}" start="20250301"><title>{}</title></programme>'


def test_external_entities_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("TOP SECRET", encoding="utf-8")
    for name, doctype in {
        "external": f'<!DOCTYPE tv [<!ENTITY x SYSTEM "file://{tmp_path}/secret.txt">]>',
        "parameter": f'<!DOCTYPE tv [<!ENTITY % p SYSTEM "file://{tmp_path}/secret.txt"> %p; '
        '<!ENTITY x "%p;">]>',
        "dtd": f'<!DOCTYPE tv SYSTEM "file://{tmp_path}/secret.txt">',
        "network": '<!DOCTYPE tv SYSTEM "http://127.0.0.1:1/xmltv.dtd">',
    }.items():
        (tmp_path / "g.xml").write_text(
            f'<?xml version="1.0"?>{doctype}<tv>{PROGRAMME.format(name, "a &x; b")}</tv>', encoding="utf-8"
        )
        assert read(tmp_path, tmp_path / "g.xml")[0].counts.stored == 1
    assert rows(tmp_path, "SELECT DISTINCT title FROM programmes") == [("a &x; b",)]


def test_billion_laughs(tmp_path: Path) -> None:
    laughs = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 12))
    (tmp_path / "g.xml").write_text(
        f'<!DOCTYPE tv [<!ENTITY l0 "ha">{laughs}]><tv>{PROGRAMME.format("one", "&l11;")}</tv>',
        encoding="utf-8",
    )
    assert read(tmp_path, tmp_path / "g.xml")[0].counts.stored == 1
    assert rows(tmp_path, "SELECT title FROM programmes") == [("&l11;",)]


HUGE = """
import sys
from pathlib import Path
from datetime import datetime, UTC
from storage.catalogue.connection import Catalogue
from tasks.ingest.ingest import ingest_feeds
from tasks.ingest.settings import IngestSettings
home, kind = Path(sys.argv[1]), sys.argv[2]
sound = b'<programme channel="one" start="20250301"><title>after</title></programme>'
with open(home / "g.xml", "wb") as file:
    file.write(b"<tv>")
    tail = b'" start="20250301"><title>a</title></programme>'
    programme, size = b'<programme channel="one" start="20250301"><title>', 1_000_000
    open_, filler, close = {
        "attribute": (b'<programme channel="', b"x" * size, tail),
        "title": (programme, b"x" * size, b"</title></programme>"),
        "comment": (b"<!--", b"x" * size, b"-->"),
        "children": (programme + b"a</title>", b"<a/>" * 250_000, b"</programme>"),
        "junk": (b"", b"<junk/>" * 150_000, b""),
        "nesting": (b"", b"<a>" * 300_000, b""),
        "rejected": (b"", b"<programme></programme>" * 45_000, b""),
    }[kind]
    file.write(open_)
    for _ in range(20):
        file.write(filler)
    file.write(close + sound + b"</tv>")
with Catalogue.open(home) as catalogue:
    settings = IngestSettings(max_reject_share=1.0)
    clocks = {"clock": lambda: 0.0, "now": lambda: datetime.now(UTC)}
    for event in ingest_feeds(catalogue, [str(home / "g.xml")], settings, **clocks):
        pass
    print(event)
    query = "SELECT count(*) FROM programmes WHERE title = 'after'"
    print(catalogue.connection.execute(query).fetchall()[0][0])
# ru_maxrss holds the parent's too
lines = Path("/proc/self/status").read_text("utf-8").splitlines()
peak = next(line for line in lines if line.startswith("VmHWM"))
print(int(peak.split()[1]) // 1024)
"""


SLOW_KINDS = [
    pytest.param(kind, marks=pytest.mark.slow)
    for kind in ("title", "comment", "junk", "nesting", "attribute", "rejected")
]


@pytest.mark.parametrize("kind", ["children", *SLOW_KINDS])
def test_memory_is_bounded_for_oversized_content(tmp_path: Path, kind: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", HUGE, str(tmp_path), kind],
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    _, after, megabytes = done.stdout.splitlines()
    assert after == "1"
    assert int(megabytes) < 400


def test_an_unterminated_comment_loses_one_programme(tmp_path: Path) -> None:
    after = [
        f'<programme channel="{i % 9}" start="202503{i // 9 % 28 + 1:02d}{i // 252 % 24:02d}">'
        f"<title>{'x' * 1000} {i}</title></programme>"
        for i in range(5000)
    ]
    outcome = only(tmp_path, guide(PROGRAMME.format("one", "a <!-- b"), *after))
    assert (outcome.counts.seen, outcome.counts.stored, outcome.reasons) == (5001, 5000, {"oversized": 1})
    assert rows(tmp_path, "SELECT min(title), count(DISTINCT title) FROM programmes") == [
        ("x" * 1000 + " 0", 5000)
    ]


def test_many_comments_before_the_root_take_linear_time(tmp_path: Path) -> None:
    (tmp_path / "g.xml").write_bytes(b"<!---->" * 140_000 + guide(programmes=2)[39:])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    assert read(tmp_path, tmp_path / "g.xml")[0].counts.stored == 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_utime - before < 5
