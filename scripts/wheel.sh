#!/usr/bin/env bash
# Build the wheel and the source archive, check what they say of themselves, install the wheel with its dependencies into
# an empty environment, and run it on the sample.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C.UTF-8
unset PYTHONPATH  # pip would take the nddup that it finds there for an installed one

work=build/wheel
rm -rf "$work" dist/nddup-*.whl
mkdir -p "$work" dist
.venv/bin/python -m pip wheel -qq --disable-pip-version-check --no-input --no-deps --wheel-dir dist .
wheel=$(ls dist/nddup-*.whl)
rm -f dist/nddup-[0-9]*.tar.gz
.venv/bin/python -m build --sdist --no-isolation --outdir dist . >"$work/sdist.log"
.venv/bin/python -m twine check --strict "$wheel" dist/nddup-[0-9]*.tar.gz

# An environment in another folder, so that nothing is imported from here; versions as in the lock.
.venv/bin/python -m venv --without-pip "$work/env"
pip=(.venv/bin/python -m pip --python "$work/env/bin/python" --disable-pip-version-check)
sed -n 's/^\([A-Za-z0-9._-]*==[^ ]*\).*/\1/p' requirements.lock >"$work/constraints.txt"
"${pip[@]}" install -qq --no-input --no-compile --constraint "$work/constraints.txt" "$wheel"
"${pip[@]}" check

# Copy the kernels compiled in this folder, and set the times of the sources, by which numba recognises them.
site=$PWD/$(echo "$work"/env/lib/python*/site-packages/nddup)
(cd nddup && find . \( -name '*.nb[ic]' -o -name 'compiled-*' \) -print0 | tar --null -T - -cf - | tar -C "$site" -xf -)
(cd nddup && find . -name '*.py' -exec touch -r {} "$site/{}" \;)

samples=$PWD/samples/debdocs
cd "$work"
env/bin/nddup run "$samples" --output run --engine local
env/bin/nddup check run
env/bin/nddup run "$samples" --output short --engine local --config short --set output.report=false --quiet
env/bin/python -c "
import nddup
run = nddup.open('run')
assert run.sql('SELECT count(*) AS n FROM documents').to_pylist() == [{'n': 580}], run
assert '/build/wheel/env/' in nddup.__file__, nddup.__file__"
# What a newcomer reads first, but the tutorial, which a test runs; all pages: env/bin/python ../../scripts/try_pages.py
env/bin/python ../../scripts/try_pages.py README.md quickstart.md
echo "$wheel: installed into an empty environment and tested"
