"""What `nddup check` said of a run, noted beside its tables, so that the report says it on its first page.

check.json              for `nddup report`, which writes the page again
report/data/check.js    for the page that is there
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from nddup.errors import OutputError
from nddup.report.gather import CHECK, is_reported, script_of
from nddup.storage.run_folder import RunFolder


def note_check(folder: RunFolder, verdict: Mapping[str, Any]) -> None:
    """Write a verdict; a folder that may not be written stays as it is."""
    noted = {"format": 1, "when": datetime.now(UTC).isoformat(timespec="seconds"), **verdict}
    with suppress(OutputError):
        folder.write_text(CHECK, json.dumps(noted, indent=2) + "\n")
        if is_reported(folder):
            folder.write_text("report/data/check.js", script_of("check", noted))
