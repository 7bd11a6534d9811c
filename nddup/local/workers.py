"""The threads and processes of a run on one machine."""

from concurrent.futures import ThreadPoolExecutor
from types import TracebackType

import pyarrow as pa

from nddup.local.scan import list_tasks, scan_here
from nddup.scanning.collection import Collection
from nddup.scanning.found import Consumer, Limits
from nddup.scanning.given_texts import read_texts


class Workers:
    """As many threads, and where there is enough to read processes, as a run may use."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.threads = ThreadPoolExecutor(count)

    def __enter__(self) -> "Workers":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.threads.shutdown()

    def scan(self, source: Collection | pa.Table, consumer: Consumer, limits: Limits) -> pa.Table:
        """The rows that a consumer makes of files or of TEXTS."""
        if isinstance(source, Collection):
            return scan_here(list_tasks(source), consumer, limits)
        batches = consumer.batches(read_texts(source.to_batches(max_chunksize=1_000)), None)
        return pa.Table.from_batches(batches, consumer.table.arrow)
