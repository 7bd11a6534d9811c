"""What a server has done since it began: numbers for `GET /metrics`, in the text format of Prometheus."""

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping

BUCKETS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)
"""Upper ends of the histogram of seconds."""


class Counts:
    """Requests by status, and the seconds of look-ups, waiting included. For several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._statuses: Counter[int] = Counter()
        self._seconds = [0] * (len(BUCKETS) + 1)
        self._sum = 0.0

    def add(self, status: int) -> None:
        """Count an answer."""
        with self._lock:
            self._statuses[status] += 1

    def add_look_up(self, seconds: float) -> None:
        """Count a look-up."""
        with self._lock:
            self._seconds[bisect_left(BUCKETS, seconds)] += 1
            self._sum += seconds

    def spell(self, now: Mapping[str, int]) -> str:
        """Return all counts, with values of this moment by name."""
        with self._lock:
            lines = ["# TYPE nddup_requests_total counter"]
            lines += [f'nddup_requests_total{{status="{one}"}} {n}' for one, n in sorted(self._statuses.items())]
            lines += ["# TYPE nddup_look_up_seconds histogram"]
            total = 0
            for end, count in zip((*map(str, BUCKETS), "+Inf"), self._seconds, strict=True):
                total += count
                lines.append(f'nddup_look_up_seconds_bucket{{le="{end}"}} {total}')
            lines += [f"nddup_look_up_seconds_sum {self._sum:.6f}", f"nddup_look_up_seconds_count {total}"]
        for name, value in now.items():
            lines += [f"# TYPE nddup_{name} gauge", f"nddup_{name} {value}"]
        return "\n".join(lines) + "\n"
