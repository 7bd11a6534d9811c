"""spark-submit jobs/sweep.py INPUT… --grid FILE --output DIR    many combinations of settings, as `nddup sweep`."""

import sys

from nddup.cli import main

if __name__ == "__main__":
    sys.exit(main(["sweep", *sys.argv[1:]]))
