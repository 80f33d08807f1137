"""Renders artifacts.html, which lists the artifacts of a nightly run, with the inputs and the uses of each.

An artifact is a published folder. Its file artifact.json records its digest, files, inputs and settings.
"""

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
SHOWN_DIGITS = 16  # number of hexadecimal digits of a digest that the page shows


@dataclass(frozen=True, kw_only=True)
class ArtifactRecord:
    """Artifact with the content of its artifact.json."""

    path: str  # folder of the artifact, relative to the home
    content: Mapping[str, Any]  # parsed artifact.json
    modified_at: datetime  # modification time of the newest file of the artifact, UTC

    @property
    def anchor(self) -> str:
        """HTML id of the section of the page that describes this artifact."""
        return _html_id(self.content)

    @property
    def inputs(self) -> Sequence[Mapping[str, str]]:
        """Kind, path and digest of each input; empty if the artifact does not record its inputs."""
        return self.content.get("made_of", {}).get("inputs", [])


def trace_inputs(workspace: Workspace, artifacts: Sequence[Artifact]) -> list[ArtifactRecord]:
    """Returns the records of artifacts and of all their direct and indirect inputs, oldest first.

    Inputs that are no longer in the home are omitted.
    """
    records: dict[str, ArtifactRecord] = {}
    queue = deque(artifact.path for artifact in artifacts)
    while queue:
        folder = workspace.home / (path := queue.popleft())
        if path in records or not (folder / "artifact.json").exists():
            continue
        content = json.loads((folder / "artifact.json").read_text(encoding="utf-8"))
        modification_times = [(folder / name).stat().st_mtime for name in content["files"]]
        modified_at = datetime.fromtimestamp(max(modification_times, default=0), UTC)
        records[path] = ArtifactRecord(path=path, content=content, modified_at=modified_at)
        queue += [item["path"] for item in records[path].inputs if item["kind"] != "Feed"]
    return sorted(records.values(), key=lambda record: (record.modified_at, record.anchor))


def render_artifacts(records: Sequence[ArtifactRecord], heading: str, registered: str) -> str:
    """Returns artifacts.html as text, to be written as UTF-8.

    Args:
        records: Artifacts, one per section of the page, in the order of the sections.
        heading: Heading of the page.
        registered: URI of the registered model in MLflow, such as models:/NAME/VERSION.
    """
    uses: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        for item in record.inputs:
            uses.setdefault(_html_id(item), []).append(record.content)
    anchors = {record.anchor for record in records}
    sections = [
        _render_section(record, uses.get(record.anchor, []), anchors, registered) for record in records
    ]
    body = replace_surrogates("\n".join(sections))
    return render_page(FOLDER / "artifacts.html", heading, FOLDER / "artifacts.css", body, [])


def _html_id(item: Mapping[str, Any]) -> str:
    """Returns the HTML id of the section of an artifact: its kind and the first digits of its digest."""
    return f"{item['kind']}-{item['digest'][:SHOWN_DIGITS]}"


def _render_link(item: Mapping[str, Any], anchors: set[str]) -> str:
    """Returns HTML with the name of an artifact or feed, linked to its section if the page has a section."""
    text = f"{escape(item['path'] if item['kind'] == 'Feed' else item['kind'])}"
    text += f" <code>{item['digest'][:SHOWN_DIGITS]}</code>"
    return f'<a href="#{_html_id(item)}">{text}</a>' if _html_id(item) in anchors else f"<span>{text}</span>"


def _render_section(
    record: ArtifactRecord, uses: Sequence[Mapping[str, Any]], anchors: set[str], registered: str
) -> str:
    """Returns the HTML section of an artifact. ``uses`` are the artifacts that have the artifact as input."""
    content, files = record.content, record.content["files"]
    provenance = content.get("made_of", {})
    size = sum(file["size"] for file in files.values())
    counts = ", ".join(f"{number:,} {escape(name)}" for name, number in content["counts"].items())
    inputs = [_render_link(item, anchors) for item in record.inputs] or ["<span>not recorded</span>"]
    used_by = [_render_link(item, anchors) for item in uses]
    if content["kind"] == "Model":
        used_by.append(f"<span>registered as <code>{escape(registered)}</code></span>")
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{file['size']:,}</td><td><code>{file['sha256']}</code></td></tr>"
        for name, file in sorted(files.items())
    )
    stage = escape(provenance.get("stage", "a stage"))
    settings = escape(json.dumps(provenance.get("settings", []), indent=1, ensure_ascii=False))
    header = "<tr><th>File</th><th>Bytes</th><th>SHA-256</th></tr>"
    return f"""<section class="panel" id="{record.anchor}">
<h2>{content["kind"]} <code>{content["digest"][:SHOWN_DIGITS]}</code></h2>
<p>{stage}, {record.modified_at:%Y-%m-%d %H:%M} UTC; {size / 1e6:,.1f} MB; {counts}</p>
<dl>
<dt>inputs</dt><dd>{" ".join(inputs)}</dd>
<dt>used by</dt><dd>{" ".join(used_by) or "<span>no artifact</span>"}</dd>
<dt>digest</dt><dd><code>{content["digest"]}</code></dd>
<dt>folder</dt><dd><code>{escape(record.path)}</code></dd>
</dl>
<details><summary>Settings</summary><pre>{settings}</pre></details>
<details><summary>{len(files)} files</summary><table>{header}{rows}</table></details>
</section>"""
