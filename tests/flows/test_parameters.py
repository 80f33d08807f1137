"""What the flows' parameters accept, as Prefect checks them before it stores anything, and the presets."""

import re
from typing import Any

import pytest
from jsonschema.exceptions import ValidationError as SchemaError
from prefect.utilities.callables import parameter_schema
from prefect.utilities.schema_tools.validation import ValidationError, validate

from flows.nightly import nightly
from flows.settings import PRESETS, resolve_settings
from tasks.overrides import SettingError

SCHEMA: Any = parameter_schema(nightly).model_dump()


def check(**parameters: Any) -> None:
    validate({"feeds": ["guide.xml"], **parameters}, SCHEMA, raise_on_error=True)


def test_the_form_begins_with_feeds_and_preset() -> None:
    order = sorted(SCHEMA["properties"], key=lambda name: SCHEMA["properties"][name]["position"])
    assert order == ["feeds", "preset", "changes", "as_of", "home", "settings"]
    assert SCHEMA["required"] == ["feeds"]
    assert SCHEMA["properties"]["settings"]["default"] is None
    assert SCHEMA["properties"]["preset"]["enum"] == ["laptop", "gpu", "smoke"]


@pytest.mark.parametrize(
    "feed",
    [
        "https://ann:k8s@example.org/g.xml", "https://ann@example.org/g.xml",
        *(
            f"https://example.org/g.xml?lang=de&{name}=Zk9v"
            for name in (
                "access_token", "api_key", "secret", "pwd", "X-Amz-Signature", "X-Amz-Security-Token", "s"
            )
        ),
        "https://example.org/g.xml?Zk9v", "https://example.org/g.xml#Zk9v", "https://example.org/g;s=Zk9v",
        "zip://*.xml::https://ann:k8s@example.org/g.zip", "s3://key:secret@bucket/g.xml",
    ],
)  # fmt: skip
def test_no_url_with_a_secret_is_stored(feed: str) -> None:
    with pytest.raises((ValidationError, SchemaError), match="does not match"):
        check(feeds=[feed])


@pytest.mark.parametrize(
    "feed",
    [
        "guide.xml", "guides/**/*-?.xml.gz", "/data/an@example;1#.xml", "env:MY_GUIDE", "secret:my-guide",
        "https://example.org/g.xml", "https://example.org:8080/g.xml.gz?country=de&days=7&tz=Europe%2FParis",
        "s3://bucket/day/*.xml", "zip://*.xml::https://example.org/g.zip",
    ],
)  # fmt: skip
def test_urls_without_secrets_are_accepted(feed: str) -> None:
    check(feeds=[feed])


def test_no_header_with_a_secret_is_stored() -> None:
    check(settings={"ingest": {"headers": ["X-Key: env:MY_KEY"]}}, changes=['ingest.headers=["Accept: a"]'])
    for parameters in (
        {"settings": {"ingest": {"headers": ["X-Key: Zk9v"]}}},
        {"changes": ['ingest.headers=["X-Key: Zk9v"]']},
        {"changes": ['ingest={"headers": ["X-Key: Zk9v"]}']},
    ):
        with pytest.raises((ValidationError, SchemaError)):
            check(**parameters)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"train": {"epochs": 0}}, "0 is less than the minimum of 1"),
        ({"train": {"dropout": 1.0}}, "1.0 is greater than or equal to the maximum of 1"),
        ({"train": {"epoch": 5}}, "'epoch' was unexpected"),
    ],
)
def test_settings_as_json_are_refused_in_one_line(settings: dict[str, Any], message: str) -> None:
    check(settings=None)
    check(settings={"train": {"epochs": 3}})
    with pytest.raises((ValidationError, SchemaError), match=re.escape(message)) as caught:
        check(settings=settings)
    assert "\n" not in str(caught.value).splitlines()[0] and len(str(caught.value).splitlines()[0]) < 200


def test_changes_apply_to_the_preset_or_to_all_settings() -> None:
    assert resolve_settings("smoke", (), None) == PRESETS["smoke"]
    changed = resolve_settings("smoke", ["train.epochs=7", "publish.promote=always"], None)
    assert (changed.train.dim, changed.train.epochs, changed.publish.promote) == (32, 7, "always")
    assert (
        resolve_settings("smoke", ["train.epochs=7"], PRESETS["laptop"]).train.dim
        == PRESETS["laptop"].train.dim
    )
    with pytest.raises(SettingError, match=r"expected NAME=VALUE such as train\.epochs=5"):
        resolve_settings("laptop", ["train.epoch=7"], None)
