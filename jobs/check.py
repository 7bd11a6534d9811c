"""Verify the promises of a run. The same as `nddup check`.

spark-submit jobs/check.py RUN --require-inputs     # exit status 3 if the inputs are gone
"""

import sys

from nddup.cli import main

if __name__ == "__main__":
    sys.exit(main(["check", *sys.argv[1:]]))
