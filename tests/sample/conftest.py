"""The committed guide."""

import gzip

import pytest
from lxml import etree

from sample.make_guide import GUIDE


@pytest.fixture(scope="session")
def xml():
    return gzip.decompress(GUIDE.read_bytes())


@pytest.fixture(scope="session")
def programmes(xml):
    return list(etree.fromstring(xml).iter("programme"))
