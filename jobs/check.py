"""spark-submit jobs/check.py RUN    proves the promises of a run, as `nddup check`."""

import sys

from nddup.cli import main

if __name__ == "__main__":
    sys.exit(main(["check", *sys.argv[1:]]))
