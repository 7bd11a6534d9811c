"""Run many combinations of settings. The same as `nddup sweep`.

spark-submit jobs/sweep.py INPUT… --grid FILE --output DIR
"""

import sys

from nddup.cli import main

if __name__ == "__main__":
    sys.exit(main(["sweep", *sys.argv[1:]]))
