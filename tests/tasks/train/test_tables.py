"""All kinds of tables train the same bits."""

from pathlib import Path

import pytest
import torch

from storage.tables import Offloaded, Resident, as_section
from tasks.optimizers import SGD, Adam, RowwiseAdagrad
from tasks.train.tables import MappedTable, OffloadedTable, ResidentTable
from tests.tasks.train.training import tensors, trained

CPU = torch.device("cpu")


@pytest.mark.parametrize("optimizer", [RowwiseAdagrad(), Adam()], ids=lambda optimizer: optimizer.name)
def test_all_tables_train_the_same_bits(toy_corpus: Path, tmp_path: Path, optimizer):
    expected = tensors(trained(toy_corpus, epochs=2, optimizer=optimizer))
    for place in (
        OffloadedTable(cache_rows=300),
        OffloadedTable(cache_rows=40, lookahead=5),
        MappedTable(folder=str(tmp_path)),
    ):
        training = trained(toy_corpus, epochs=2, optimizer=optimizer, table=place)
        assert isinstance(training.table, Offloaded) and training.table.storage.hot < len(training.table)
        found = tensors(training)
        assert set(found) == set(expected) and all(
            torch.equal(found[name], tensor) for name, tensor in expected.items()
        ), place


def test_tables_that_fit_are_resident():
    rows = as_section(torch.randn(1000, 128))
    assert isinstance(OffloadedTable().build(rows, SGD(), CPU), Resident)
    assert isinstance(OffloadedTable(cache_bytes=1000 * 128 * 4).build(rows, SGD(), CPU), Resident)
    assert isinstance(ResidentTable().build(rows, SGD(), CPU), Resident)


def test_bytes_become_rows():
    rows = as_section(torch.randn(1000, 128))
    table = OffloadedTable(cache_bytes=100 * 128 * 4 * 3).build(rows, Adam(), CPU)
    assert isinstance(table, Offloaded) and table.storage.hot + table.storage.recent == 100
    table = OffloadedTable(cache_bytes=1000 * 4 + 100 * 128 * 2, row_dtype="bfloat16").build(
        rows, RowwiseAdagrad(), CPU
    )
    assert (
        isinstance(table, Offloaded)
        and table.storage.hot + table.storage.recent == 100
        and table.storage.cells["rows"].dtype == torch.bfloat16
    )
    with pytest.raises(
        ValueError, match="4,001 bytes do not hold a row of 512 bytes and the 4,000 bytes of row-wise state"
    ):
        OffloadedTable(cache_bytes=4001).build(rows, RowwiseAdagrad(), CPU)
    narrow = OffloadedTable(cache_bytes=100 * 128).build(
        as_section(torch.randn(1000, 8)), Adam(), CPU
    )  # a record is 128 bytes
    assert isinstance(narrow, Offloaded) and narrow.storage.hot + narrow.storage.recent == 100


def test_bfloat16_rows_are_close_to_float32_rows(toy_corpus: Path):
    narrow, full = (
        tensors(trained(toy_corpus, epochs=2, table=place))["rows"]
        for place in (OffloadedTable(row_dtype="bfloat16", cache_rows=300), ResidentTable())
    )
    assert (
        not torch.equal(narrow, full)
        and torch.nn.functional.cosine_similarity(narrow, full, dim=1).mean() > 0.99
    )
