"""A consumer that fails, in a module that worker processes can import."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from nddup.reading.formats import FileHead
from nddup.scanning.found import Batches, LocatedRecord
from nddup.tables import RECORDS, Table


@dataclass(frozen=True)
class Breaking:
    """A consumer that kills its process, or raises an error."""

    is_death: bool
    table: ClassVar[Table] = RECORDS

    def batches(self, found: Iterable[Sequence[LocatedRecord]], head: FileHead | None) -> Batches:
        """Fail before the first batch."""
        del found, head
        if self.is_death:
            os._exit(9)
        raise OSError("the disk is gone")
        yield
