"""The parent of the Python workers: whatever happens while it loads, Spark reads a port from it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.places import ROOT

PORT_BYTES = 4

BROKEN = {
    "an error": "raise RuntimeError('numba is not what it was')",
    "an exit": "raise SystemExit(3)",
    "an interrupt": "raise KeyboardInterrupt",
    "no error": "import sys; sys.modules.pop('numba'); sys.path.remove(HERE); from numba import *; import numba",
}
NOISE = """
import ctypes, os
HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
print("a greeting")
os.write(1, b"a greeting of a lower level")
ctypes.CDLL(None).printf(b"and one that waits in C's buffer")
"""


@pytest.mark.parametrize("what", BROKEN)
def test_only_the_port_is_written_to_standard_output(what: str, tmp_path: Path) -> None:
    """If loading prints or fails, the daemon runs all the same and reports it on standard error."""
    package = tmp_path / "numba"
    package.mkdir()
    (package / "__init__.py").write_text(NOISE + BROKEN[what])

    daemon = subprocess.run(
        [sys.executable, "-m", "nddup.spark.daemon", "pyspark.worker"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"},
        stdin=subprocess.DEVNULL,  # the daemon ends with its standard input
        capture_output=True,
        timeout=120,
        check=False,
    )

    assert len(daemon.stdout) == PORT_BYTES
    assert 0 < int.from_bytes(daemon.stdout, "big") < 1 << 16
    assert b"a greeting of a lower level" in daemon.stderr
    assert (b"the kernels were not loaded" in daemon.stderr) == (what != "no error")


def test_workers_draw_random_numbers_of_their_own() -> None:
    """NumPy's random generator is loaded before the fork, but each worker seeds its own."""
    script = (
        "import os, numpy.random\n"
        "from nddup.spark.daemon import seed_anew\n"
        "os.register_at_fork(after_in_child=seed_anew)\n"
        "for _ in range(2):\n"
        "    if os.fork() == 0:\n"
        "        print(numpy.random.rand(), flush=True); os._exit(0)\n"
        "    os.wait()\n"
    )

    drawn = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()

    assert len(set(drawn)) == len(drawn) == 2


WORKER = """
import os, resource
from nddup.spark.daemon import load_kernels, preload
preload(load_kernels)
child = os.fork()
if child:
    raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
import pyarrow as pa
from nddup.engines.duck import DuckEngine
engine = DuckEngine("a task")
engine.see("rows", pa.table({"a": list(range(300_000))}))
assert engine.sql("SELECT count(DISTINCT a) AS n FROM rows")["n"].to_pylist() == [300_000]
bytearray(150 << 20)
"""


def test_a_worker_of_a_gigabyte_has_room_beside_its_questions() -> None:
    """`conf/cluster.yaml` gives each worker 1 GB of addresses, of which DuckDB's threads would reserve most."""
    done = subprocess.run([sys.executable, "-c", WORKER], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
