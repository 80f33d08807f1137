"""Runs the test that must notice a mutation, for each mutation that the command line names, and prints
``NAME<tab>exit code of pytest`` after each.

``python -m tests.device.mutate NAME …``. Torch and the device are loaded once; each mutation has a process
that is forked from this one, where the module is imported with the mutated line.
"""

import importlib.util
import os
import sys
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path

import httpx  # noqa: F401  (this and the next three are imported by tests, once for all mutations)
import pyarrow.parquet  # noqa: F401
import pytest
import safetensors.torch  # noqa: F401
import scipy.sparse  # noqa: F401

from tests.device import plugin  # takes the place of torch.cuda
from tests.device.mutations import MUTATIONS, Mutation

TABLES = Path(__file__).parents[2] / "storage" / "tables"


class Mutated(SourceFileLoader):
    """Loads a module of storage/tables with a mutated line, without bytecode."""

    mutation: Mutation

    def path_stats(self, path: str) -> dict[str, float]:
        raise OSError("bytecode is neither read nor written")

    def get_data(self, path: str) -> bytes:
        text = super().get_data(path).decode("utf-8")
        assert text.count(self.mutation.line) == 1, f"{path} has {text.count(self.mutation.line)} such lines"
        return text.replace(self.mutation.line, self.mutation.becomes).encode("utf-8")


class Finder:
    """Finds the mutated module before all others."""

    def __init__(self, mutation: Mutation) -> None:
        self.mutation, self.name = mutation, f"storage.tables.{mutation.file.removesuffix('.py')}"

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name != self.name:
            return None
        file = TABLES / self.mutation.file
        loader = Mutated(name, str(file))
        loader.mutation = self.mutation
        return importlib.util.spec_from_file_location(name, file, loader=loader)


def run(name: str) -> int:
    """Runs pytest with a mutation; returns its exit code, or minus the signal that ended it."""
    sys.stdout.flush()
    if not (child := os.fork()):
        os.dup2(2, 1)
        assert not [module for module in sys.modules if module.startswith("storage.tables")]
        sys.meta_path.insert(0, Finder(MUTATIONS[name]))
        options = ["-p", "no:cacheprovider", "-m", "gpu", "-q", "-x"]
        tests = ["tests/storage/tables/test_gpu.py", "-k", MUTATIONS[name].caught_by]
        os._exit(pytest.main([*options, *tests], plugins=[plugin]))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    for mutation in sys.argv[1:]:
        print(mutation, run(mutation), sep="\t", flush=True)
