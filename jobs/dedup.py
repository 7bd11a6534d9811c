"""Find the near-duplicates of a collection. The same as `nddup run`.

spark-submit jobs/dedup.py INPUT… --output DIR [--config FILE] [--set a.b=c]…
"""

import sys

from nddup.cli import main

if __name__ == "__main__":
    sys.exit(main(["run", *sys.argv[1:]]))
