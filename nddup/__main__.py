"""`python -m nddup`: the command line, as `nddup`.

Python puts the current folder first on the module path before any of this runs; it is taken out before anything else is
imported. Only `python -P -m nddup`, and the command `nddup`, never look there.
"""

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]
    from nddup.cli import console

    raise SystemExit(console())
