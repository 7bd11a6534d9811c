"""Fail when a test run skipped a test or ran none: python scripts/no_skips.py build/junit.xml."""

import sys
import xml.etree.ElementTree as ET
from pathlib import Path


def skipped(report: Path) -> tuple[int, list[str]]:
    """Return the number of tests in a JUnit report, and a line for each skipped one (expected failures excepted)."""
    cases = list(ET.parse(report).getroot().iter("testcase"))  # noqa: S314 (pytest wrote it a moment ago)
    lines = []
    for case in cases:
        lines += [
            f"{case.get('classname')}::{case.get('name')}: {skip.get('message')}"
            for skip in case.iter("skipped")
            if skip.get("type") != "pytest.xfail"
        ]
    return len(cases), lines


def main() -> int:
    """Print the skipped tests; return the exit status."""
    report = Path(sys.argv[1])
    if not report.is_file():
        print(f"no test report {report}: the tests did not run")
        return 1
    count, lines = skipped(report)
    for line in lines:
        print(f"skipped: {line}")
    if count == 0:
        print("no test ran")
    return int(bool(lines) or count == 0)


if __name__ == "__main__":
    sys.exit(main())
