"""Compare a run with a list of known duplicates. The same as `nddup evaluate`.

spark-submit jobs/evaluate.py RUN --truth FILE
"""

import sys

from nddup.cli import main

if __name__ == "__main__":
    sys.exit(main(["evaluate", *sys.argv[1:]]))
