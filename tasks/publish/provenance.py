"""Renders artifacts.html: the artifacts of a nightly run, what they were made of and what used them."""

import json
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

from storage.artifacts import Artifact
from storage.home.workspace import Workspace
from tasks.pages import render_page, replace_surrogates

FOLDER = Path(__file__).parent
DIGITS = 16  # shown digits of a digest


@dataclass(frozen=True, kw_only=True)
class ArtifactRecord:
    """The content of one artifact.json."""

    path: str
    content: Mapping[str, Any]
    at: datetime  # modification time of its newest file

    @property
    def anchor(self) -> str:
        """The id of its section on the page."""
        return _anchor(self.content)

    @property
    def inputs(self) -> Sequence[Mapping[str, str]]:
        """Kind, path and digest of each input; empty for artifacts of older versions."""
        return self.content.get("made_of", {}).get("inputs", [])


def trace(workspace: Workspace, artifacts: Sequence[Artifact]) -> list[ArtifactRecord]:
    """Returns the records of artifacts and, if they are in the home, of all their inputs; oldest first."""
    records: dict[str, ArtifactRecord] = {}
    queue = deque(artifact.path for artifact in artifacts)
    while queue:
        folder = workspace.home / (path := queue.popleft())
        if path in records or not (folder / "artifact.json").exists():
            continue
        content = json.loads((folder / "artifact.json").read_text(encoding="utf-8"))
        written = [(folder / name).stat().st_mtime for name in content["files"]]
        at = datetime.fromtimestamp(max(written, default=0), UTC)
        records[path] = ArtifactRecord(path=path, content=content, at=at)
        queue += [item["path"] for item in records[path].inputs if item["kind"] != "Feed"]
    return sorted(records.values(), key=lambda record: (record.at, record.anchor))


def render_artifacts(records: Sequence[ArtifactRecord], heading: str, registered: str) -> str:
    """Renders the page, to be written as UTF-8; ``registered`` is the URI of the model in MLflow."""
    uses: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        for item in record.inputs:
            uses.setdefault(_anchor(item), []).append(record.content)
    anchors = {record.anchor for record in records}
    sections = [_section(record, uses.get(record.anchor, []), anchors, registered) for record in records]
    body = replace_surrogates("\n".join(sections))
    return render_page(FOLDER / "artifacts.html", heading, FOLDER / "artifacts.css", body, [])


def _anchor(item: Mapping[str, Any]) -> str:
    return f"{item['kind']}-{item['digest'][:DIGITS]}"


def _link(item: Mapping[str, Any], anchors: set[str]) -> str:
    text = f"{escape(item['path'] if item['kind'] == 'Feed' else item['kind'])}"
    text += f" <code>{item['digest'][:DIGITS]}</code>"
    return f'<a href="#{_anchor(item)}">{text}</a>' if _anchor(item) in anchors else f"<span>{text}</span>"


def _section(
    record: ArtifactRecord, uses: Sequence[Mapping[str, Any]], anchors: set[str], registered: str
) -> str:
    content, files = record.content, record.content["files"]
    provenance = content.get("made_of", {})
    size = sum(file["size"] for file in files.values())
    counts = ", ".join(f"{number:,} {escape(name)}" for name, number in content["counts"].items())
    inputs = [_link(item, anchors) for item in record.inputs] or ["<span>not recorded</span>"]
    used_by = [_link(item, anchors) for item in uses]
    if content["kind"] == "Model":
        used_by.append(f"<span>registered as <code>{escape(registered)}</code></span>")
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{file['size']:,}</td><td><code>{file['sha256']}</code></td></tr>"
        for name, file in sorted(files.items())
    )
    stage = escape(provenance.get("stage", "a stage"))
    settings = escape(json.dumps(provenance.get("settings", []), indent=1, ensure_ascii=False))
    head = "<tr><th>File</th><th>Bytes</th><th>SHA-256</th></tr>"
    return f"""<section class="panel" id="{record.anchor}">
<h2>{content["kind"]} <code>{content["digest"][:DIGITS]}</code></h2>
<p>{stage}, {record.at:%Y-%m-%d %H:%M} UTC; {size / 1e6:,.1f} MB; {counts}</p>
<dl>
<dt>inputs</dt><dd>{" ".join(inputs)}</dd>
<dt>used by</dt><dd>{" ".join(used_by) or "<span>no artifact</span>"}</dd>
<dt>digest</dt><dd><code>{content["digest"]}</code></dd>
<dt>folder</dt><dd><code>{escape(record.path)}</code></dd>
</dl>
<details><summary>Settings</summary><pre>{settings}</pre></details>
<details><summary>{len(files)} files</summary><table>{head}{rows}</table></details>
</section>"""
