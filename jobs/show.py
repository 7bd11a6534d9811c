"""Print the results of a run. The same as `nddup show`.

python jobs/show.py RUN [--copies-of ID]
"""

import sys

from nddup.cli import main

if __name__ == "__main__":
    sys.exit(main(["show", *sys.argv[1:]]))
