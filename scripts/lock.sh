#!/usr/bin/env bash
# Make the locks anew from pyproject.toml and airflow-requirements.in: hashes, and no address of any registry.
set -euo pipefail
cd "$(dirname "$0")/.."

# Packages of an extra that others would be taken too new for.
bounds=$(mktemp)
trap 'rm -f "$bounds"' EXIT
echo 'python-dateutil<3' >"$bounds" # botocore, of s3; pandas takes any

compile() {
    .venv/bin/python -m piptools compile --quiet --upgrade --generate-hashes --allow-unsafe --strip-extras \
        --no-header --no-annotate --no-emit-index-url --no-emit-find-links --no-emit-trusted-host "$@"
}
compile --all-build-deps --constraint "$bounds" --output-file requirements.lock pyproject.toml
compile --all-build-deps --extra dev --extra figures --extra connect --constraint requirements.lock \
    --output-file requirements-dev.lock pyproject.toml
compile --output-file airflow-requirements.lock airflow-requirements.in
