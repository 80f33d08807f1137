#!/bin/sh
# Writes a home into one archive: deployments/backup.sh HOME ARCHIVE.tar (deployments/backup.py). PYTHON names an interpreter with
# GuideSpace's packages, by default that of the checkout's .venv.
set -eu
root=$(dirname "$0")/..
PYTHONPATH="$root" exec "${PYTHON:-$root/.venv/bin/python}" -m deployments.backup "$@"
