# GuideSpace. Needs Python 3.11+ and make; every target makes .venv itself when it is missing or stale.
#   make run [FEED=my.xml.gz] [PRESET=laptop] [GUIDESPACE_HOME=dir]    the nightly run, on the bundled sample guide or yours
#   make test    make slow    make check    make bench    make soak

PYTHON ?= python3
FEED ?= sample/guide.xml.gz
PRESET ?= laptop
GUIDESPACE_HOME ?= guidespace-home
READY := .venv/.ready
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: run test slow check bench soak setup clean
run: $(READY)
	.venv/bin/guidespace nightly --feed $(FEED) --home "$(GUIDESPACE_HOME)" --preset $(PRESET)

test: $(READY)
	.venv/bin/python -m pytest -q -n 2 --dist loadfile

slow: $(READY)
	.venv/bin/python -m pytest -q -m slow

check: $(READY)
	.venv/bin/ruff check .
	.venv/bin/pyright
	.venv/bin/lint-imports

bench: $(READY)
	.venv/bin/python -m pip install -q -e '.[dev,bench]'
	.venv/bin/python -m benchmarks

soak: $(READY)
	.venv/bin/python -m pytest -q -m soak

setup: $(READY)

# Stale: pyproject.toml is newer, or the interpreter it was made with is gone.
$(READY): pyproject.toml $(if $(shell .venv/bin/python -c "" 2>&1 && echo ok),,rebuild)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "GuideSpace needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Set PYTHON=python3.11 (or newer)."; exit 2; }
	$(PYTHON) -m venv .venv || { echo "python -m venv failed; on Debian and Ubuntu: apt install python3-venv"; exit 2; }
	.venv/bin/python -m pip install -q --upgrade pip
	.venv/bin/python -m pip install -q -e '.[dev]'
	@touch $@

.PHONY: rebuild
rebuild:
	@rm -rf .venv

clean:
	rm -rf .venv guidespace-home
