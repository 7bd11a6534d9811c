"""Divide a finished run into parts that share no near-duplicates. The same as `nddup split`.

python jobs/split.py RUN --parts train=.9,test=.1 --output DIR
"""

import sys

from nddup.cli import main

if __name__ == "__main__":
    sys.exit(main(["split", *sys.argv[1:]]))
