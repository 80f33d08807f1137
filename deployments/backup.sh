#!/bin/sh
# Writes a home into one archive: deployments/backup.sh HOME ARCHIVE.tar
#
# It waits for a run that writes to the home (WAIT_SECONDS, two hours), and runs wait for it. Servers may stay up: their SQLite
# databases are copied by SQLite. Not in it: published artifacts, which the next night makes anew, logs, what `guidespace up` notes
# of its processes, and homes within the home (smoke, tune, ablate). It needs flock (util-linux), sqlite3 and tar.
set -eu
home=$(realpath "$1")
archive=$(realpath -m "$2")
[ -f "$home/home.json" ] || { echo "$home is no GuideSpace home (no home.json)" >&2; exit 2; }

exec 9>>"$home/writer.lock"
flock --timeout "${WAIT_SECONDS:-7200}" 9 || {
    echo "$home is still being written: $(cat "$home/writer.lock")" >&2
    exit 1
}
umask 077 # it holds likes of viewers and, in Prefect's database, blocks
copies=$(mktemp -d "$archive.XXXXXX")
trap 'rm -rf "$copies" "$archive.tmp"' EXIT
cd "$home"
set --
for inner in */home.json; do
    [ -f "$inner" ] || continue
    set -- "$@" --exclude="./${inner%/*}"
done
for database in *.db prefect/*.db; do
    [ -f "$database" ] || continue
    mkdir -p "$copies/$(dirname "$database")"
    sqlite3 "$database" ".timeout 60000" ".backup '$copies/$database'"
done
tar --create --file "$archive.tmp" --warning=no-file-changed --exclude=./artifacts --exclude=./logs --exclude=./writer.lock \
    --exclude=./up.json --exclude='./*.db' --exclude='./*.db-*' "$@" . \
    || [ $? -eq 1 ] # a file of a server grew while it was read
tar --append --file "$archive.tmp" --directory "$copies" .
mv "$archive.tmp" "$archive"
