"""Reading a zip archive by its local headers."""

import io
import zipfile
from pathlib import Path

from tasks.ingest.sources.zip import MemberReader, read_members


def test_a_zip_without_directory_is_read_completely(tmp_path: Path) -> None:
    """At the end of the compressed bytes, zlib still has output that did not fit into the buffer."""
    content = b"<tv>" + b"a" * 16387
    with zipfile.ZipFile(tmp_path / "g.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("g.xml", content)
        end = archive.start_dir
    with open(tmp_path / "g.zip", "r+b") as file:
        file.truncate(end)
        (member,) = read_members(file)
        reader = MemberReader(file, member)
        assert io.BufferedReader(reader, 8192).read() == content
    assert reader.decoder and reader.decoder.eof and not reader.damage
