#!/usr/bin/env bash
# Bring Airflow's own environment, build/airflow/venv, up to date with airflow-requirements.lock.
set -euo pipefail
cd "$(dirname "$0")/.."

home=build/airflow
mkdir -p "$home"
exec 9<"$home" # of two calls at once, the second waits
flock 9
wanted=$(sha256sum airflow-requirements.lock | cut -c 1-64)
[ "$(cat "$home/.installed" 2>/dev/null)" != "$wanted" ] || exit 0
python=$(.venv/bin/python -c 'import os, sys; print(os.path.realpath(sys.executable))')
rm -rf "$home/venv" "$home/.installed"
"$python" -m venv --without-pip "$home/venv"
echo "Installing airflow-requirements.lock into $home/venv"
if ! .venv/bin/python -m pip --python "$home/venv/bin/python" install --quiet --disable-pip-version-check --no-input \
    --no-compile --no-deps --require-hashes -r airflow-requirements.lock >"$home/pip.log" 2>&1; then
    grep -v '^WARNING' "$home/pip.log" | tail -n 8 | sed -E 's#[A-Za-z+]+://[^[:space:]]+#(address)#g' >&2
    echo "Installing failed; the whole log is $home/pip.log." >&2
    exit 1
fi
echo "$wanted" >"$home/.installed"
