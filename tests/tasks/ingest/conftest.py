import importlib.util
import sys
from pathlib import Path

if "guides" not in sys.modules:  # importlib mode puts no test folder on the path
    spec = importlib.util.spec_from_file_location("guides", Path(__file__).with_name("guides.py"))
    assert spec is not None and spec.loader is not None
    sys.modules["guides"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules["guides"])
