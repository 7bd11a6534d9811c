"""spark-submit jobs/evaluate.py RUN --truth FILE    compares a run with a list of duplicates, as `nddup evaluate`."""

import sys

from nddup.cli import main

if __name__ == "__main__":
    sys.exit(main(["evaluate", *sys.argv[1:]]))
