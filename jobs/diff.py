"""Say what changed between two finished runs. The same as `nddup diff`.

python jobs/diff.py RUN RUN --output DIR
"""

import sys

from nddup.cli import main

if __name__ == "__main__":
    sys.exit(main(["diff", *sys.argv[1:]]))
