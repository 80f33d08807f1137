# GuideSpace. Needs Python 3.11 to 3.13 and make; every target makes .venv itself when it is missing or stale.
#   make run [FEED=my.xml.gz] [PRESET=laptop] [GUIDESPACE_HOME=dir]    the nightly run, on the bundled sample guide or yours
#   make test    make slow    make versions    make check    make bench    make soak    make on-gpu    make lock    make audit
# `make run` installs what running needs, the others also what developers need (extra dev).

PYTHON ?= python3
FEED ?= sample/guide.xml.gz
PRESET ?= laptop
GUIDESPACE_HOME ?= guidespace-home
READY := .venv/.ready
DEVELOPER := .venv/.developer
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: run test slow versions check bench soak on-gpu lock audit setup clean
run: $(READY)
	.venv/bin/guidespace nightly --feed $(FEED) --home "$(GUIDESPACE_HOME)" --preset $(PRESET)

# Three processes: on two cores some tests wait (for servers, a browser) while others compute.
test: $(DEVELOPER)
	.venv/bin/python -m pytest -q -n 3 --dist loadfile

slow: $(DEVELOPER)
	.venv/bin/python -m pytest -q -m slow -n 2 --dist loadfile

# Tests with the other supported Pythons that are installed.
versions: $(DEVELOPER)
	.ci/versions

# PLW1514 (text files and pipes name their encoding) is in preview, which would change other rules as well.
check: $(DEVELOPER)
	.venv/bin/ruff check .
	.venv/bin/ruff check --preview --select PLW1514 .
	.venv/bin/ruff format --check .
	.venv/bin/pyright
	.venv/bin/lint-imports

bench: $(DEVELOPER)
	.venv/bin/python -m pip install -q -e '.[dev,bench]'
	.venv/bin/python -m benchmarks

soak: $(DEVELOPER)
	.venv/bin/python -m pytest -q -m soak

# Figures of a GPU, into $(OUT); docs/on_gpu.md says how to read them.
OUT ?= on-gpu
on-gpu: $(DEVELOPER)
	.venv/bin/python -m benchmarks.on_gpu --out "$(OUT)"

# The versions that the tests ran with; +cpu and the like name builds that only some registries have.
lock: $(DEVELOPER)
	.venv/bin/python -m pip freeze --exclude-editable | sed 's/+[a-z0-9.]*$$//' > requirements.lock

# Known vulnerabilities of the versions in requirements.lock. A report: neither a finding nor a missing network fails it.
# pip-audit runs apart from .venv.
audit:
	-@$(PYTHON) -m venv .venv/audit && .venv/audit/bin/pip install -q 'pip-audit>=2.9,<3' \
	&& .venv/audit/bin/pip-audit --no-deps --disable-pip --timeout 20 --requirement requirements.lock

setup: $(DEVELOPER)

# Stale: pyproject.toml is newer, or the interpreter it was made with is gone.
$(READY): pyproject.toml $(if $(shell [ -x .venv/bin/python ] && .venv/bin/python -c "" && echo ok),,rebuild)
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null || { \
	is=$$($(PYTHON) --version 2>/dev/null) || is="not usable"; \
	echo "GuideSpace needs Python 3.11, 3.12 or 3.13; $(PYTHON) is $$is. Set PYTHON=python3.13 (or one of the others)."; exit 2; }
	$(PYTHON) -m venv .venv || { echo "python -m venv failed; on Debian and Ubuntu: apt install python3-venv"; exit 2; }
	.venv/bin/python -m pip install -q --upgrade pip
	.venv/bin/python -m pip install -q -e .
	@folder=$$(mktemp -d) && PREFECT_HOME=$$folder .venv/bin/python -c \
	'import sys; from flows.server import migrate; from storage.tracking import Tracking; migrate(); Tracking(sys.argv[1]).client' $$folder; rm -r $$folder
	@touch $@

$(DEVELOPER): $(READY)
	.venv/bin/python -m pip install -q -e '.[dev]'
	@touch $@

.PHONY: rebuild
rebuild:
	@rm -rf .venv

clean:
	rm -rf .venv guidespace-home
