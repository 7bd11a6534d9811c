"""`python -m bench [NAME ...] [--small]`: run measurements, each in a process of its own."""

import argparse
import importlib
import subprocess
import sys
from pathlib import Path

NAMES = (
    "quality", "thresholds", "profiles", "labels", "kinds", "papers", "reading", "loop", "formats", "pairing",
    "exchanges", "peers", "mining", "graph", "families", "giants", "explosion", "scale", "stages", "memory",
    "records", "fuzz", "report", "repository", "against", "histories", "kills", "compactions", "exact", "passages",
    "spark", "fits", "shapes", "nights", "serving",
)  # fmt: skip


def build_parser() -> argparse.ArgumentParser:
    """Return the parser for all measurements; each reads the options that it needs."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure speed and quality of nddup.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one or more of {', '.join(NAMES)}; all by default")
    parser.add_argument("--small", action="store_true", help="small inputs, to test that it works, not how fast")
    parser.add_argument("--cores", type=int, default=2, help="local[N] (default 2)")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder with debdocs-dev and ruweb")
    parser.add_argument("--collection", type=Path, metavar="DIR", help="papers: any input of a run, in place of --data")
    parser.add_argument("--summaries", type=Path, metavar="FILE", help="labels: a table with tabs, column `summary`")
    parser.add_argument(
        "--versions",
        type=Path,
        nargs="+",
        metavar="DIR",
        default=[],
        help="labels: versions of one documentation, HTML",
    )
    parser.add_argument("--megabytes", type=int, help="reading, formats, records: MB of input (default 500, 100, 30)")
    parser.add_argument("--profile", action="store_true", help="reading: profile the functions of the sketch task")
    parser.add_argument("--against", type=Path, help="loop: another checkout to compare; the two take turns")
    parser.add_argument("--sketches", type=int, help="pairing, exchanges: how many (200,000, 100,000)")
    parser.add_argument("--copies", type=int, default=1, help="peers: N times the documents, each copy in other words")
    parser.add_argument("--engine", choices=("local", "spark"), default="spark", help="scale, nights: (spark)")
    parser.add_argument("--near", type=float, default=0.2, help="scale: share of the records in families (0.2)")
    parser.add_argument("--compressed", action="store_true", help="scale: files of half a million records, .jsonl.zst")
    parser.add_argument("--words", default="20,33", help="scale: words of a record, LOW,HIGH without HIGH (20,33)")
    parser.add_argument("--rounds", type=int, help="peers: runs of each system, in turn (default 3; small 1)")
    parser.add_argument("--systems", help="peers, spark, shapes: only these, with commas between; all by default")
    parser.add_argument("--thresholds", help="shapes: of `pairs.threshold`, with commas between (0.7)")
    parser.add_argument("--limit", type=float, default=900, help="peers: seconds after which a peer is ended (900)")
    parser.add_argument("--tasks", type=int, help="stages: of the exchanges; by default as many as their memory needs")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="stages, nights: a setting of the run"
    )
    parser.add_argument(
        "--records",
        help="scale, stages: two counts (250000,2000000; 1000000,10000000; small 20000,80000);"
        " memory, fuzz, graph: one (200000, 1000000, 100000000);"
        " repository: any (100000,1000000; small 5000); histories: how many (1000), kills: how many (200);"
        " compactions: how many commits (500); papers: pages of the part romip (530000);"
        " spark: any (5000,20000,41460; families 5000,9999,10001,20000); fits: any (10000,100000,1000000);"
        " shapes: any (2000,6000,18000; small 200,600);"
        " nights: any, before the night (100000,300000,1000000; small 2000,4000)",
    )
    parser.add_argument(
        "--parts",
        help="fuzz: some of records,values,kernels,settings,resumes; papers: of its parts; with commas, all by default;"
        " histories: pages or spark; spark: texts, families",
    )
    return parser


def main() -> int:
    """Run the measurements named on the command line."""
    parser = build_parser()
    options = parser.parse_args()
    unknown = set(options.names) - set(NAMES)
    if unknown:
        parser.error(f"no measurement {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    if len(options.names) == 1:
        importlib.import_module(f"bench.{options.names[0]}").run(options)
        return 0
    flags = [argument for argument in sys.argv[1:] if argument not in options.names]
    status = 0
    for name in options.names or NAMES:
        status |= subprocess.run([sys.executable, "-m", "bench", name, *flags], check=False).returncode
    return status


if __name__ == "__main__":
    sys.exit(main())
