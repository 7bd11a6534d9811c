"""Find what is repeated below the document. The same as `nddup passages`.

python jobs/passages.py INPUT… --output DIR
"""

import sys

from nddup.cli import main

if __name__ == "__main__":
    sys.exit(main(["passages", *sys.argv[1:]]))
