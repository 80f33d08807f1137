#!/bin/sh
# Writes a home to an archive (deployments/backup.py): deployments/backup.sh HOME ARCHIVE.tar. The variable PYTHON names
# an interpreter that has the packages of GuideSpace; the default is .venv/bin/python of the checkout.
set -eu
root=$(dirname "$0")/..
PYTHONPATH="$root" exec "${PYTHON:-$root/.venv/bin/python}" -m deployments.backup "$@"
