"""Where the tests find the checkout and the shared test data."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("NDDUP_SHARED", ROOT.parent / "shared" / "data"))
