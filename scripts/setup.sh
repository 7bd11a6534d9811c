#!/usr/bin/env bash
# Bring .venv up to date: setup.sh run | local | dev. Does nothing if it already is. `local` also installs what the tests
# of the embedded engine need; `dev` finds or installs what all tests need: Java, Chromium, the environment of Airflow.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
    echo "$1" >&2
    exit 1
}

find_tools() { # find or install what the tests need beside .venv, once for all tests
    [ "$1" = dev ] || return 0
    scripts/java.sh >/dev/null && scripts/chromium.sh >/dev/null && scripts/airflow.sh
}

case "${1:-}" in
run) lock=requirements.lock ;;
local | dev) lock=requirements-dev.lock ;;
*) fail "usage: scripts/setup.sh run|local|dev" ;;
esac

# Of two setups at once, the second waits.
exec 8<.
flock 8

# The stamp names what was installed, by a hash of the lock and pyproject.toml.
stamp=.venv/.installed
wanted="$1 $(cat "$lock" pyproject.toml | sha256sum | cut -c 1-64)"
whole="dev $(cat requirements-dev.lock pyproject.toml | sha256sum | cut -c 1-64)" # includes all that `run` needs
if [ -e "$stamp" ] && .venv/bin/python -c '' 2>/dev/null && grep -qxF -e "$wanted" -e "$whole" "$stamp"; then
    find_tools "$1"
    exit
fi

python=
for candidate in ${PYTHON:+"$PYTHON"} python3 python3.13 python3.12 python3.11; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        python=$candidate
        break
    fi
done
[ -n "$python" ] || fail "nddup needs Python 3.11 or newer: install it, or say where it is with PYTHON=/path/to/python3."

if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
        fail "$python cannot make virtual environments: install them (Debian: apt-get install python3-venv), then run this again."
    rm -rf .venv
    "$python" -m venv .venv
fi
# One development package, pyfim, is distributed as C source.
header=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_paths()["include"])')/Python.h
if [ "$1" != run ] && ! { command -v cc >/dev/null && [ -e "$header" ]; }; then
    scripts/debian.sh "A C compiler and Python's headers" gcc libc6-dev python3-dev || true
    command -v cc >/dev/null && [ -e "$header" ] ||
        fail "The tests compare with a C program: install a C compiler and Python's headers (Debian: apt-get install gcc python3-dev), then run this again."
fi
rm -f "$stamp"
echo "Installing $lock into .venv (the first time some minutes: Spark alone is 490 MB)"

install() { # LOG ARGUMENT...: quiet; on failure print the end of pip's log, without addresses
    local log=$1
    shift
    # --no-compile: Python compiles modules when they are imported.
    if ! .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-input --no-compile --no-deps "$@" >"$log" 2>&1; then
        grep -v '^WARNING' "$log" | tail -n 8 | sed -E 's#[A-Za-z+]+://[^[:space:]]+#(address)#g' >&2
        fail "Installing failed; the whole log is $log."
    fi
}
# First the locked pip: the one that comes with Python reads the pages of an index at half its speed.
awk '/^[^ ]/ { is_pip = /^pip==/ } is_pip' requirements-dev.lock >.venv/pip.lock
install .venv/pip.log --require-hashes -r .venv/pip.lock
# Spark comes as source: building it keeps one core busy while everything else installs on the other, in two halves,
# because one of them alone takes twice as long as Airflow's environment. The lock is complete, so the order does not
# matter.
awk '/^[^ ]/ { file = /^pyspark==/ ? "spark" : half++ % 2 } { print > (".venv/part-" file ".lock") }' "$lock"
parts=()
for part in spark 0 1; do
    install ".venv/pip-$part.log" --require-hashes -r ".venv/part-$part.lock" &
    parts+=($!)
done
# Airflow's environment needs only this pip.
if [ "$1" = dev ]; then scripts/airflow.sh; fi &
airflow=$!
for part in "${parts[@]}" "$airflow"; do
    wait "$part" || { wait; exit 1; }
done
install .venv/pip.log --no-build-isolation -e .
# The demonstration compiles the kernels that it calls, less than half of them; the tests call all.
if [ "$1" != run ]; then .venv/bin/nddup setup; fi
echo "$wanted" >"$stamp"
find_tools "$1"
