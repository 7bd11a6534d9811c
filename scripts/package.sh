#!/usr/bin/env bash
# Pack what executors need beside Spark itself into dist/nddup-deps.tar.gz: nddup, its dependencies as locked, and the
# kernels compiled. It is for clusters on whose machines nddup is not installed (docs/operations.md says how to submit it).
# The machines need Spark and the same minor version of Python; kernels compiled for another processor are made anew.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C.UTF-8

python=.venv/bin/python
work=build/package
rm -rf "$work"
mkdir -p "$work/deps" dist

# Spark brings pyspark and py4j to its executors; setuptools only builds.
"$python" - >"$work/requirements.lock" <<'PYTHON'
import re
from pathlib import Path

entries = re.split(r"\n(?=\S)", Path("requirements.lock").read_text(encoding="utf-8"))
print("\n".join(e for e in entries if not re.match(r"(pyspark|py4j|setuptools|wheel)\b", e)))
PYTHON
pip=("$python" -m pip install --quiet --disable-pip-version-check --no-input --no-deps --target "$work/deps")
"${pip[@]}" --no-compile --require-hashes -r "$work/requirements.lock"
rm -rf "$work/deps/bin"
find "$work/deps" -name tests -type d -prune -exec rm -rf {} +
# With the kernels that are compiled already: each is known by its source's time, which `pax` keeps to the nanosecond.
cp -rp nddup "$work/deps/nddup"
(cd "$work" && PYTHONPATH=deps ../../"$python" -c "
import nddup.run.kernels
assert '/build/package/deps/' in nddup.run.kernels.__file__, nddup.run.kernels.__file__
nddup.run.kernels.call_kernels()")
# isal packs nearly as tightly as `gzip -1`, in a fifth of its time.
tar -C "$work/deps" --format=pax -cf - . | "$python" -m isal.igzip -1 >dist/nddup-deps.tar.gz
echo "dist/nddup-deps.tar.gz: $(du -m dist/nddup-deps.tar.gz | cut -f 1) MB, unpacked $(du -sm "$work/deps" | cut -f 1) MB"
