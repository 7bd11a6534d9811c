"""Find which items of one collection stand in another. The same as `nddup against`.

spark-submit jobs/against.py A B [--of item|document|any] [--output DIR]
"""

import sys

from nddup.cli import main

if __name__ == "__main__":
    sys.exit(main(["against", *sys.argv[1:]]))
