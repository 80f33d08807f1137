"""Removal of secrets from URLs."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.addresses import (
    HARMLESS_PARAMETERS,
    differ_in_secrets_only,
    find_secrets,
    is_valid_url,
    without_secrets,
)
from tests.secret_parameters import NAMES

SECRET = "Zk9vLq7xWd3mTb"


@pytest.mark.parametrize("name", NAMES)
def test_values_of_other_parameters_are_removed(name: str) -> None:
    for url in (
        f"https://example.org/g.xml?{name}={SECRET}",
        f"https://example.org/g.xml?day=1&{name}={SECRET}&country=de",
        f"https://example.org/g.xml?day=1;{name}={SECRET}",
        f"https://example.org/g.xml?day=1%26{name}%3D{SECRET}",
        f"https://example.org/g;{name}={SECRET}/g.xml",
        f"https://example.org/g.xml#{name}={SECRET}",
        f"s3://bucket/*.xml?{name}={SECRET}",
        f"zip://*.xml::https://example.org/g.zip?{name}={SECRET}",
    ):
        assert SECRET not in without_secrets(url)
        assert SECRET in find_secrets(url)
        assert without_secrets(without_secrets(url)) == without_secrets(url)


@pytest.mark.parametrize(
    ("url", "left"),
    [
        (
            "https://me:secret@example.org:8443/g.xml?token=abc&day=1#x",
            "https://example.org:8443/g.xml?day=1",
        ),
        ("https://me:p@ss@example.org/g.xml", "https://example.org/g.xml"),
        ("https://SECRETTOKEN@example.org/g.xml?SECRETTOKEN", "https://example.org/g.xml"),
        ("https://example.org/g.xml?U0VDUkVU==", "https://example.org/g.xml"),
        ("http://u:p@[::bad/g.xml?token=a", "http://[::bad/g.xml"),
        ("http://user:pa/ss@example.org/g.xml?token=a", "http://example.org/g.xml"),
        ("simplecache::s3://KEY:SECRET@bucket/day/g.xml", "simplecache::s3://bucket/day/g.xml"),
        (
            "zip://*.xml::https://u:p@example.org/g.zip?key=a&lang=de",
            "zip://*.xml::https://example.org/g.zip?lang=de",
        ),
        ("http://[::1]:8080/g.xml", "http://[::1]:8080/g.xml"),
        (
            "https://example.org/a%20b/g.xml?tz=Europe/Paris&channels=a,b",
            "https://example.org/a%20b/g.xml?tz=Europe/Paris&channels=a,b",
        ),
        ("https://example.org/g.xml?feed=https://u:secret@example.com/", "https://example.org/g.xml"),
    ],
)
def test_urls_without_secrets(url: str, left: str) -> None:
    assert without_secrets(url) == left
    assert without_secrets(left) == left


def test_a_new_signature_does_not_change_the_source() -> None:
    nights = [
        f"https://b.s3.amazonaws.com/g.xml.gz?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AK{night}%2F2026%2Fs3&X-Amz-Date={night}T03Z"
        f"&X-Amz-Expires=3600&X-Amz-SignedHeaders=host&X-Amz-Signature=ab{night}&region=uk"
        for night in ("20261121", "20261122")
    ]  # fmt: skip
    assert {without_secrets(url) for url in nights} == {"https://b.s3.amazonaws.com/g.xml.gz?region=uk"}
    assert differ_in_secrets_only(*nights)


def test_parameters_that_select_a_guide_are_no_secrets() -> None:
    assert without_secrets("https://e.org/g?country=de&token=a") != without_secrets(
        "https://e.org/g?country=fr&token=a"
    )
    assert not differ_in_secrets_only(
        "https://e.org/g?postcode=1&token=a", "https://e.org/g?postcode=2&token=b"
    )
    assert differ_in_secrets_only("https://e.org/g?postcode=1&token=a", "https://e.org/g?postcode=1&token=b")
    assert {name.lower() for name in NAMES}.isdisjoint(HARMLESS_PARAMETERS)


@pytest.mark.parametrize(
    "url",
    [
        "http://u:p@[::bad/",
        "http://u:p@host:port/g.xml",
        "https:///g.xml",
        "http://h:99999/",
        "http://u:p@a..b/",
        "http://user:pa/ss@h/g",
        "http:////u:p@h/g.xml",
        "http://:A?u:p@\r0",
    ],
)
def test_invalid_urls(url: str) -> None:
    assert not is_valid_url(url)
    assert "p@" not in without_secrets(url) and "pa/ss" not in without_secrets(url)


@given(st.text(string.printable, max_size=60))
def test_removal_of_secrets_is_idempotent_for_any_text(text: str) -> None:
    left = without_secrets(f"https://{text}")
    assert without_secrets(left) == left
    find_secrets(text), is_valid_url(text)
