"""Make a growing repository, add to it, and query it. The same as `nddup index`.

spark-submit jobs/index.py add REPO INPUT… [--id-prefix P] [--replace]
"""

import sys

from nddup.cli import main

if __name__ == "__main__":
    sys.exit(main(["index", *sys.argv[1:]]))
