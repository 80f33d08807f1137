#!/bin/sh
# Writes a home to an archive: deployments/backup.sh HOME ARCHIVE.tar (deployments/backup.py). PYTHON is an interpreter
# with the packages of GuideSpace; the default is that of the .venv of the checkout.
set -eu
root=$(dirname "$0")/..
PYTHONPATH="$root" exec "${PYTHON:-$root/.venv/bin/python}" -m deployments.backup "$@"
