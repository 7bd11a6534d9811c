#!/usr/bin/env bash
# Make the locks again from pyproject.toml and airflow-requirements.in: with hashes, and without registry addresses.
set -euo pipefail
cd "$(dirname "$0")/.."

# Upper bounds that an extra needs: without them the first lock, made without extras, would take newer versions.
bounds=$(mktemp)
trap 'rm -f "$bounds"' EXIT
echo 'python-dateutil<3' >"$bounds" # for botocore, of the extra s3; pandas takes any

compile() {
    .venv/bin/python -m piptools compile --quiet --upgrade --generate-hashes --allow-unsafe --strip-extras \
        --no-header --no-annotate --no-emit-index-url --no-emit-find-links --no-emit-trusted-host "$@"
}
compile --all-build-deps --constraint "$bounds" --output-file requirements.lock pyproject.toml
compile --all-build-deps --extra dev --extra figures --extra connect --constraint requirements.lock \
    --output-file requirements-dev.lock pyproject.toml
compile --output-file airflow-requirements.lock airflow-requirements.in
