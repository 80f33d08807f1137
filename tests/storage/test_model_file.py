"""Model files round-trip, and other content is rejected."""

import hashlib
import json
import stat
import zipfile
from pathlib import Path

import numpy as np
import pytest

from storage.formats import model_file
from storage.formats.model_file import MANIFEST, ModelFileError, ModelIdentity, unpack_model, write_model_file

INFO = ModelIdentity(version="7", digest="ab" * 32)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    np.save(folder / "similarity.npy", np.arange(12, dtype=np.float32).reshape(3, 4))
    for name in ("lexicon.json", "rows.safetensors", "titles.parquet", "tokens.parquet"):
        (folder / name).write_bytes(name.encode() * 50)
    (folder / "artifact.json").write_text("{}", encoding="utf-8")
    (folder / "notes.txt").write_text("x", encoding="utf-8")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def unpacked(file: Path) -> Path:
    target = file.with_suffix(".unpacked")
    target.mkdir()
    assert unpack_model(file, target) == INFO
    return target


def rewrite(source: Path, target: Path, manifest: dict[str, object], **members: bytes) -> Path:
    """Writes an archive with changes to the manifest, and more or other members (``a__b`` is ``a.b``)."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        content = {name: old.read(name) for name in old.namelist()}
        content |= {name.replace("__", "."): data for name, data in members.items()}
        described = json.loads(content.pop(MANIFEST))
        for name, data in content.items():
            described["parts"][name] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        new.writestr(MANIFEST, json.dumps(described | manifest))
        for name, data in content.items():
            new.writestr(name, data)
    return target


def array(end: str) -> bytes:
    """Returns the header of a NumPy file with an end that may be invalid."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {end}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header


def test_a_model_is_unchanged_by_the_file(folder: Path, tmp_path: Path) -> None:
    write_model_file(folder, INFO, tmp_path / "a.zip")
    write_model_file(folder, INFO, tmp_path / "b.zip")
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    parts = contents(folder)
    del parts["artifact.json"], parts["notes.txt"]
    assert contents(unpacked(tmp_path / "a.zip")) == parts
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        assert json.loads(archive.read(MANIFEST))["format_version"] == 1
    copy = rewrite(tmp_path / "a.zip", tmp_path / "c.zip", {}, kinds__parquet=b"of a later version")
    assert (unpacked(copy) / "kinds.parquet").read_bytes() == b"of a later version"


@pytest.mark.parametrize(
    ("manifest", "members", "reason"),
    [
        ({"format_version": 2}, {}, "version 2; this version reads 'guidespace-model' version 1: update"),
        ({"format": "other"}, {}, "format 'other'"),
        ({"digest": "../../x"}, {}, "no digest of the model"),
        ({"version": "1\x1b[2J"}, {}, "no version of the model"),
        ({"parts": {}}, {}, "other parts"),
        ({"parts": []}, {}, "damaged"),
        ({}, {"../evil__json": b"{}"}, "a member named '../evil.json'"),
        ({}, {"/etc/evil__json": b"{}"}, "a member named '/etc/evil.json'"),
        ({}, {"model__pkl": b"\x80\x04."}, "a member named 'model.pkl'"),
        ({}, {"evil__npy": b"\x80\x04."}, "an array that cannot be mapped"),
        ({}, {"evil__npy": array("(1,")}, "an array that cannot be mapped"),
        ({}, {"evil__npy": array(f"({10**30},)}}")}, "an array that cannot be mapped"),
    ],
)
def test_other_content_is_rejected(
    folder: Path, tmp_path: Path, manifest: dict[str, object], members: dict[str, bytes], reason: str
) -> None:
    write_model_file(folder, INFO, tmp_path / "a.zip")
    hostile = rewrite(tmp_path / "a.zip", tmp_path / "b.zip", manifest, **members)
    (target := tmp_path / "in" / "target").mkdir(parents=True)
    with pytest.raises(ModelFileError) as caught:
        unpack_model(hostile, target)
    assert reason in str(caught.value)
    assert list(tmp_path.rglob("evil.json")) == []


def test_pickled_arrays_links_compression_and_missing_parts_are_rejected(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_model_file(folder, INFO, good := tmp_path / "a.zip")

    def reason_of(file: Path) -> str:
        (target := tmp_path / f"target-{file.name}").mkdir(exist_ok=True)
        with pytest.raises(ModelFileError) as caught:
            unpack_model(file, target)
        return str(caught.value)

    np.save(tmp_path / "o.npy", np.array([{}], dtype=object), allow_pickle=True)
    pickled = rewrite(good, tmp_path / "b.zip", {}, dense__npy=(tmp_path / "o.npy").read_bytes())
    assert "an array that cannot be mapped (dense.npy" in reason_of(pickled)
    with zipfile.ZipFile(tmp_path / "c.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(MANIFEST, b"0" * 10_000_000)
    assert "a compressed member" in reason_of(tmp_path / "c.zip")
    link = zipfile.ZipInfo("rows.safetensors")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "d.zip", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    assert "a link or an encrypted member (rows.safetensors)" in reason_of(tmp_path / "d.zip")
    (folder / "tokens.parquet").unlink()
    write_model_file(folder, INFO, tmp_path / "e.zip")
    assert "no entry for tokens.parquet" in reason_of(tmp_path / "e.zip")
    monkeypatch.setattr(model_file, "MAX_BYTES", 100)
    assert f"has {good.stat().st_size:,} bytes; the limit is 100" in reason_of(good)


def test_damaged_model_files_are_rejected(folder: Path, tmp_path: Path) -> None:
    """Files cut anywhere, and files with one changed byte, are rejected or unchanged in content."""
    write_model_file(folder, INFO, tmp_path / "a.zip")
    content, parts = (tmp_path / "a.zip").read_bytes(), contents(folder)
    cuts = [content[:length] for length in range(0, len(content), 61)]
    flips = [
        content[:place] + bytes([content[place] ^ 0x41]) + content[place + 1 :]
        for place in range(0, len(content), 7)
    ]
    names = content.index(b"PK\x01\x02")  # a name that is not UTF-8, in the central directory
    undecodable = content[: names + 8] + b"\x00\x08" + content[names + 10 : names + 46] + b"\xff"
    flips.append(undecodable + content[names + 47 :])
    for number, damaged in enumerate([*cuts, *flips]):
        (tmp_path / "b.zip").write_bytes(damaged)
        (target := tmp_path / f"{number}").mkdir()
        try:
            info = unpack_model(tmp_path / "b.zip", target)
        except ModelFileError:
            continue
        assert number >= len(cuts)
        assert all(parts[name] == data for name, data in contents(target).items()), number
        assert info == INFO and len(contents(target)) == 5
