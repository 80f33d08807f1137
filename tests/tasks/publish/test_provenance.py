"""The page of artifacts: records, links and escaping."""

import re
from dataclasses import dataclass

from storage.artifacts import Corpus, Guide, Model, Vocabulary
from storage.home.workspace import Workspace
from storage.stages import Stage
from tasks.publish.provenance import render_artifacts, trace_inputs

EVIL = "</section><script>“R&B”"


@dataclass(frozen=True)
class Options:
    name: str = EVIL
    size: int = 3


def publish(kind, home, *inputs, stage="", made_of=None):
    with Stage(kind, __file__, stage or kind.__name__.lower()).publish(home, *inputs) as draft:
        (draft.folder / "file.txt").write_text(f"{kind} {inputs}", "utf-8", "replace")
        draft.counts["titles"] = 1_234
        draft.details |= {"made_of": "of the writer's own"}
        draft.made_of = made_of or draft.made_of
    return draft.artifact


def test_page_links_the_model_to_the_feeds_and_back(tmp_path):
    home = str(tmp_path / "home")
    feed = {"kind": "Feed", "path": f"guide {EVIL}.xml", "digest": "f" * 64}
    guide = publish(Guide, home, 1, made_of={"stage": "ingest", "inputs": [feed], "settings": []})
    vocabulary = publish(Vocabulary, home, guide, Options())
    corpus = publish(Corpus, home, guide, vocabulary, {"a": "mapping"}, Options(size=4))
    publish(Corpus, home, guide, vocabulary, Options(size=5))  # of another night
    model = publish(Model, home, corpus, stage="pack")
    records = trace_inputs(Workspace(home), (model,))
    assert [record.content["kind"] for record in records] == ["Guide", "Vocabulary", "Corpus", "Model"]
    assert [item["path"] for item in records[2].inputs] == [guide.path, vocabulary.path]
    page = render_artifacts(records, "Artifacts", "models:/titles/7")
    page.encode()
    targets, links = re.findall(r'id="(.*?)"', page), re.findall(r'href="#(.*?)"', page)
    assert targets == [f"{kind}-{made.digest[:16]}" for kind, made in zip(
        ("Guide", "Vocabulary", "Corpus", "Model"), (guide, vocabulary, corpus, model), strict=True
    )]  # fmt: skip
    guide_, vocabulary_, corpus_, model_ = targets
    inputs, uses = [guide_, guide_, vocabulary_, corpus_], [vocabulary_, corpus_, corpus_, model_]
    assert sorted(links) == sorted(inputs + uses)
    assert "<script>" not in page and "guide &lt;/section&gt;" in page and "f" * 16 in page
    assert (
        "models:/titles/7" in page
        and "pack, 20" in page
        and "1,234 titles" in page
        and "&quot;size&quot;: 4" in page
    )


def test_artifacts_of_older_versions_have_no_recorded_inputs(tmp_path):
    home = str(tmp_path / "home")
    with Workspace(home).publishing(Model, "key") as draft:
        (draft.folder / "file.txt").write_text("model", encoding="utf-8")
    (record,) = trace_inputs(Workspace(home), (draft.artifact,))
    assert "not recorded" in render_artifacts([record], "Artifacts", "models:/titles/7")
