#!/usr/bin/env bash
# Pack what executors need besides Spark into dist/nddup-deps.tar.gz: nddup, its locked dependencies, and the compiled
# kernels. It is for clusters on whose machines nddup is not installed (docs/operations.md says how to submit it).
# The machines need Spark and the same minor version of Python; another type of processor compiles the kernels again.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C.UTF-8

python=.venv/bin/python
work=build/package
rm -rf "$work"
mkdir -p "$work/deps" dist

# Executors have pyspark and py4j from Spark; setuptools is needed only to build. No job loads datasketch, nor scipy,
# which only datasketch needs.
"$python" - >"$work/requirements.lock" <<'PYTHON'
import re
from pathlib import Path

entries = re.split(r"\n(?=\S)", Path("requirements.lock").read_text(encoding="utf-8"))
print("\n".join(e for e in entries if not re.match(r"(pyspark|py4j|setuptools|wheel|datasketch|scipy)\b", e)))
PYTHON
pip=("$python" -m pip install --quiet --disable-pip-version-check --no-input --no-deps --target "$work/deps")
"${pip[@]}" --no-compile --require-hashes -r "$work/requirements.lock"
rm -rf "$work/deps/bin"
find "$work/deps" -name tests -type d -prune -exec rm -rf {} +
# Kernels that are compiled already come along: each is keyed by its source's time, which `pax` keeps to the nanosecond.
cp -rp nddup "$work/deps/nddup"
(cd "$work" && PYTHONPATH=deps ../../"$python" -c "
import nddup.compiling.warm_up
assert '/build/package/deps/' in nddup.compiling.warm_up.__file__, nddup.compiling.warm_up.__file__
nddup.compiling.warm_up.call_kernels()")
# isal compresses nearly as well as `gzip -1`, in a fifth of its time.
tar -C "$work/deps" --format=pax -cf - . | "$python" -m isal.igzip -1 >dist/nddup-deps.tar.gz
echo "dist/nddup-deps.tar.gz: $(du -m dist/nddup-deps.tar.gz | cut -f 1) MB, unpacked $(du -sm "$work/deps" | cut -f 1) MB"
