"""The page artifacts.html: each artifact of a night, what it was made of and what was made of it."""

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
from tasks.pages import clean, render_page

HERE = Path(__file__).parent
SHOWN = 16  # digits of a digest


@dataclass(frozen=True, kw_only=True)
class Record:
    """What artifact.json says of one artifact."""

    path: str
    content: Mapping[str, Any]
    at: datetime  # when its newest file was written

    @property
    def anchor(self) -> str:
        """Its id on the page."""
        return _anchor(self.content)

    @property
    def inputs(self) -> Sequence[Mapping[str, str]]:
        """Kind, path and digest of what it was made of; nothing is known of what an older version made."""
        return self.content.get("made_of", {}).get("inputs", [])


def trace(workspace: Workspace, made: Sequence[Artifact]) -> list[Record]:
    """The records of artifacts and of all that they were made of, as far as they are in the home; the oldest
    first.
    """
    found: dict[str, Record] = {}
    waiting = deque(artifact.path for artifact in made)
    while waiting:
        folder = workspace.home / (path := waiting.popleft())
        if path in found or not (folder / "artifact.json").exists():
            continue
        content = json.loads((folder / "artifact.json").read_text(encoding="utf-8"))
        written = [(folder / name).stat().st_mtime for name in content["files"]]
        at = datetime.fromtimestamp(max(written, default=0), UTC)
        found[path] = Record(path=path, content=content, at=at)
        waiting += [each["path"] for each in found[path].inputs if each["kind"] != "Feed"]
    return sorted(found.values(), key=lambda record: (record.at, record.anchor))


def render_artifacts(records: Sequence[Record], heading: str, registered: str) -> str:
    """Renders the page, to be written as UTF-8; ``registered`` is the model's address in MLflow."""
    uses: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        for each in record.inputs:
            uses.setdefault(_anchor(each), []).append(record.content)
    known = {record.anchor for record in records}
    sections = [_section(record, uses.get(record.anchor, []), known, registered) for record in records]
    body = clean("\n".join(sections))
    return render_page(HERE / "artifacts.html", heading, HERE / "artifacts.css", body, [])


def _anchor(named: Mapping[str, Any]) -> str:
    return f"{named['kind']}-{named['digest'][:SHOWN]}"


def _link(named: Mapping[str, Any], known: set[str]) -> str:
    text = f"{escape(named['path'] if named['kind'] == 'Feed' else named['kind'])}"
    text += f" <code>{named['digest'][:SHOWN]}</code>"
    return f'<a href="#{_anchor(named)}">{text}</a>' if _anchor(named) in known else f"<span>{text}</span>"


def _section(record: Record, uses: Sequence[Mapping[str, Any]], known: set[str], registered: str) -> str:
    content, files = record.content, record.content["files"]
    by = content.get("made_of", {})
    size = sum(each["size"] for each in files.values())
    counts = ", ".join(f"{number:,} {escape(name)}" for name, number in content["counts"].items())
    made_of = [_link(each, known) for each in record.inputs] or ["<span>not recorded</span>"]
    made_into = [_link(each, known) for each in uses]
    if content["kind"] == "Model":
        made_into.append(f"<span>registered as <code>{escape(registered)}</code></span>")
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{each['size']:,}</td><td><code>{each['sha256']}</code></td></tr>"
        for name, each in sorted(files.items())
    )
    settings = escape(json.dumps(by.get("settings", []), indent=1, ensure_ascii=False))
    head = "<tr><th>File</th><th>Bytes</th><th>SHA-256</th></tr>"
    return f"""<section class="panel" id="{record.anchor}">
<h2>{content["kind"]} <code>{content["digest"][:SHOWN]}</code></h2>
<p>{escape(by.get("stage", "a stage"))}, {record.at:%Y-%m-%d %H:%M} UTC; {size / 1e6:,.1f} MB; {counts}</p>
<dl>
<dt>made of</dt><dd>{" ".join(made_of)}</dd>
<dt>made into</dt><dd>{" ".join(made_into) or "<span>nothing further</span>"}</dd>
<dt>digest</dt><dd><code>{content["digest"]}</code></dd>
<dt>folder</dt><dd><code>{escape(record.path)}</code></dd>
</dl>
<details><summary>Settings</summary><pre>{settings}</pre></details>
<details><summary>{len(files)} files</summary><table>{head}{rows}</table></details>
</section>"""
