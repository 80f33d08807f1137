"""Renders self-contained HTML pages from shared parts (theme, head, logo, button) and embedded data.

A page opens from disk without a network, and in the artifact view of MLflow, which is a sandboxed frame.
Therefore, a page uses no browser storage, web fonts or libraries, and its content security policy forbids all
requests. The data of a page are JSON in a script element. ``<``, ``>``, ``&``, U+2028 and U+2029 are escaped,
so that no title can end the script element. Lone surrogates, which UTF-8 cannot encode, become U+FFFD.
"""

import html
import json
import re
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(__file__).parent
THEME = FOLDER / "theme.css"
ESCAPES = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029"}


def encode_data(document: object) -> str:
    """Encodes a document as JSON that is safe inside an HTML script element."""
    return replace_surrogates(json.dumps(document, ensure_ascii=False, separators=(",", ":"))).translate(
        ESCAPES
    )


def render_page(template: Path, heading: str, style: Path, data: str, scripts: Sequence[Path]) -> str:
    """Fills a template and returns an HTML page, which must be written as UTF-8.

    ``{{> NAME}}`` is replaced by the shared part NAME.html; ``{{heading}}``, ``{{style}}``, ``{{data}}`` and
    ``{{script}}`` are replaced by the arguments.
    """
    text = re.sub(
        r"\{\{> (\w+)\}\}\n",
        lambda match: (FOLDER / f"{match[1]}.html").read_text("utf-8"),
        template.read_text("utf-8"),
    )
    values = {
        "heading": html.escape(replace_surrogates(heading)),
        "style": THEME.read_text(encoding="utf-8") + style.read_text(encoding="utf-8"),
        "data": data,
        "script": "\n".join(script.read_text(encoding="utf-8") for script in scripts),
    }
    # in one pass, so that "{{data}}" in a title is not replaced
    return re.sub(r"\{\{(\w+)\}\}", lambda match: values[match[1]], text)


def replace_surrogates(text: str) -> str:
    """Replaces lone surrogates, which UTF-8 cannot encode, by U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
