# GuideSpace. Needs Python 3.11 to 3.13 and make; every target creates .venv if it is missing or outdated.
#   make run [FEED=my.xml.gz] [PRESET=laptop] [GUIDESPACE_HOME=dir]    the nightly run, by default of the sample guide
#   make test    make slow    make versions    make check    make bench    make soak    make on-gpu    make tables-wheel    make lock    make audit
# `make run` installs the extra night, the other targets also the extra dev.

PYTHON ?= python3
FEED ?= sample/guide.xml.gz
PRESET ?= laptop
GUIDESPACE_HOME ?= guidespace-home
READY := .venv/.ready
DEVELOPER := .venv/.developer
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: run test slow versions check bench soak on-gpu tables-wheel lock audit setup clean
run: $(READY)
	.venv/bin/guidespace nightly --feed $(FEED) --home "$(GUIDESPACE_HOME)" --preset $(PRESET)

# Three processes on two cores, because some tests wait for servers or a browser.
test: $(DEVELOPER)
	.venv/bin/python -m pytest -q -n 3 --dist loadfile

# A test may fail because a server is slow while other tests run, so failed tests are repeated one by one.
ALONE = echo "Repeating the failed tests one by one:" && .venv/bin/python -m pytest -m slow -v \
	--last-failed --last-failed-no-failures none

# In the order of folders: pytest-xdist would start files of one test, among them the longest, last.
slow: $(DEVELOPER)
	.venv/bin/python -m pytest -q -m slow -n 2 --dist loadfile --no-loadscope-reorder || { test $$? -eq 1 && $(ALONE); }

# Runs tests with the other supported versions of Python that are installed.
versions: $(DEVELOPER)
	.ci/versions

# PLW1514 (explicit encodings) is a preview rule; preview in pyproject.toml would change other rules, too.
check: $(DEVELOPER)
	.venv/bin/ruff check .
	.venv/bin/ruff check --preview --select PLW1514 .
	.venv/bin/ruff format --check .
	.venv/bin/pyright
	.venv/bin/lint-imports
	@.venv/bin/python -m benchmarks --outdated

# Within 90 minutes; the same command continues an interrupted one.
bench: $(DEVELOPER)
	.venv/bin/python -m pip install -q -e '.[dev,bench]'
	.venv/bin/python -m benchmarks

soak: $(DEVELOPER)
	.venv/bin/python -m pytest -q -m soak

# Writes GPU measurements to $(OUT); docs/on_gpu.md explains them.
OUT ?= on-gpu
on-gpu: $(DEVELOPER)
	.venv/bin/python -m benchmarks.on_gpu --out "$(OUT)"

# Builds a wheel of storage/tables, with the import name offloaded_tables, in dist.
tables-wheel: $(DEVELOPER)
	.venv/bin/python -m deployments.tables_wheel dist

# Writes the installed versions, without suffixes such as +cpu: only some registries have these builds.
lock: $(DEVELOPER)
	.venv/bin/python -m pip freeze --exclude-editable | sed 's/+[a-z0-9.]*$$//' > requirements.lock

# Reports known vulnerabilities of the versions in requirements.lock. Neither a finding nor a network error fails the
# target. pip-audit has a separate environment.
audit:
	-@$(PYTHON) -m venv .venv/audit && .venv/audit/bin/pip install -q 'pip-audit>=2.9,<3' \
	&& .venv/audit/bin/pip-audit --no-deps --disable-pip --timeout 20 --requirement requirements.lock

setup: $(DEVELOPER)

# A small run in a temporary home, with local servers even if the user has others. It compiles the loops of numba, which
# caches them next to the code, for this CPU and these versions, and stores the databases of storage/database_templates.py.
TRIAL_RUN = echo "A trial run prepares the environment: machine code, empty databases …"; folder=$$(mktemp -d) && \
	env -u PREFECT_API_URL -u PREFECT_PROFILE -u MLFLOW_TRACKING_URI -u MLFLOW_REGISTRY_URI PREFECT_HOME=$$folder/prefect \
	.venv/bin/guidespace nightly --feed sample/guide.xml.gz --home $$folder --preset smoke \
	--set train.backend=compiled > $$folder/trial.log 2>&1 || { cat $$folder/trial.log; exit 1; }; rm -r $$folder

# .venv is outdated if pyproject.toml is newer or its interpreter no longer exists.
$(READY): pyproject.toml $(if $(shell [ -x .venv/bin/python ] && .venv/bin/python -c "" && echo ok),,rebuild)
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null || { \
	is=$$($(PYTHON) --version 2>/dev/null) || is="not usable"; \
	echo "GuideSpace needs Python 3.11, 3.12 or 3.13; $(PYTHON) is $$is. Set PYTHON=python3.13 (or one of the others)."; exit 2; }
	$(PYTHON) -m venv .venv || { echo "python -m venv failed; on Debian and Ubuntu: apt install python3-venv"; exit 2; }
	.venv/bin/python -m pip install -q --upgrade pip
	.venv/bin/python -m pip install -q -e '.[night]'
	@$(TRIAL_RUN)
	@touch $@

$(DEVELOPER): $(READY)
	.venv/bin/python -m pip install -q -e '.[dev]'
	@touch $@

.PHONY: rebuild
rebuild:
	@rm -rf .venv

clean:
	rm -rf .venv guidespace-home
