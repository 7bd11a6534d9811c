#!/usr/bin/env bash
# Make requirements.lock and requirements-dev.lock anew from pyproject.toml: hashes, and no address of any registry.
set -euo pipefail
cd "$(dirname "$0")/.."

compile() {
    .venv/bin/python -m piptools compile --quiet --upgrade --generate-hashes --allow-unsafe --strip-extras --all-build-deps \
        --no-header --no-annotate --no-emit-index-url --no-emit-find-links --no-emit-trusted-host "$@" pyproject.toml
}
compile --output-file requirements.lock
compile --extra dev --extra figures --extra bench --constraint requirements.lock --output-file requirements-dev.lock
