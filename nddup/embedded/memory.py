"""The memory that a run on one machine may take: each step says how many bytes it needs before it takes them.

    Memory   the limit, what the documents already hold, and the refusal of a step that needs more

A step whose size is not known beforehand asks again after each of its parts.
"""

from dataclasses import dataclass

from nddup.errors import NeedsSparkError

BASE = 1 << 29
OF_ROWS = 7.0
OF_TEXT = 1_000
"""Of a text whose tokens are read again, whatever its length: they stay in the files that workers wrote, and the
threads hold some millions of them while they compare."""
OF_DOCUMENT, OF_POSTING = 1_000, 60
MAPPED, MAPPED_SHARE = 1 << 30, 0.1
"""Bytes of ids above which they lie in a file, at most this share of the limit: the system then holds of them what
its memory has room for."""
OF_MAPPED_ROWS, OF_MAPPED_DOCUMENT, OF_KEPT, OF_NUMBERED, OF_SHARED = 4.0, 500, 650, 5, 8
"""The same where ids are mapped: of rows without them, a document, one in the keep-list, an id of a sketch that may be
near another, and more for one that two share."""
ID_BYTES, ROUND_BYTES = 8, 1 << 30
"""Of an id, and of the ids that are counted at a time."""
OF_MATCH, OF_EDGE, OF_PAIR, OF_SET_MEMBER, OF_MEMBER = 100, 150, 150, 20, 120
OF_ID = 4
"""Copies of a row's ids in memory while its table is made."""


@dataclass
class Memory:
    """The memory that a run may take, and the part that its documents already hold.

        512 MB                                      Python, its libraries, the kernels, worker processes
        7 times the bytes of the rows read          until tables are made of them
        1,000 a text that is read again             its tokens stay in files
        1,000 a document and 60 an id of a sketch   from the documents to the distinct sketches and their postings
        more ids than `mapped_from` are mapped      4 times the rows without ids; then 500 a document, 8 an id where a
                                                    later run may go on from this one, 1 to 2 an id in `sift`; 5 an id
                                                    of the sketches that may be near another, 8 more if two share it,
                                                    while these are compared; 650 a document more in the keep-list
        and on top of these, in each step
            match        100 a pair of distinct sketches
            expand       100 a pair of distinct sketches, 150 a pair of documents, and eight times an id
            components   150 a pair of distinct sketches
            mine         `bound_memory` of the largest components, one for each thread, and 20 a member of a set
            name         120 a member of a cluster, and four times an id

    Attributes:
        given: limit in bytes; None: no limit.
        advice: what the error message recommends when the limit is too low.
        bytes_in_use: bytes that stay in use through all later steps.
        is_mapped: whether the ids of the documents lie in a mapped file.
    """

    given: int | None = None
    advice: str = "go on with --engine spark --resume"
    bytes_in_use: float = BASE
    is_mapped: bool = False

    @property
    def mapped_from(self) -> float:
        """Bytes of ids above which they lie in a file."""
        return MAPPED if self.given is None else min(MAPPED, MAPPED_SHARE * self.given)

    def hold(self, documents: int, postings: int, *, is_copied: bool = False) -> None:
        """Require what the documents take while pairs and clusters are found, and count it in every later step.

        Args:
            postings: the ids of all their sketches.
            is_copied: whether these were joined with those of an earlier run: they are then in memory.
        """
        of_each = OF_MAPPED_DOCUMENT if self.is_mapped else OF_DOCUMENT
        of_id = (ID_BYTES if is_copied else 0) if self.is_mapped else OF_POSTING
        self.bytes_in_use = BASE + of_each * documents + of_id * postings
        self.require(OF_KEPT * documents if self.is_mapped else 0, f"the {documents:,} documents")

    def of_numbered(self, postings: int) -> float:
        """Return the bytes of the ids of sketches that may be near another, while those that two share are found."""
        return OF_NUMBERED * postings + ROUND_BYTES if self.is_mapped else 0

    def of_shared(self, postings: int) -> float:
        """Return the bytes of ids that two sketches share, which `hold` has not counted where ids are mapped."""
        return (OF_NUMBERED + OF_SHARED) * postings if self.is_mapped else 0

    def require(self, size: float, what: str, *, part: float = 1.0) -> None:
        """Raise an error if a step needs more than the limit.

        Args:
            size: bytes that the step needs on top of what is held.
            what: the subject of the message: what needs them.
            part: the share of the step that needs them; from it the message says what the whole may need.

        Raises:
            NeedsSparkError: if that is too much; it says how to go on. What earlier steps saved stays in the folder.
        """
        needed = self.bytes_in_use + size
        if self.given is not None and needed > self.given:
            whole = f" (the whole some {(self.bytes_in_use + size / part) / 1e9:.0f} GB)" if part < 1 else ""
            raise NeedsSparkError(
                f"{what} may need {needed / 1e9:.1f} GB of memory{whole}, more than local.memory"
                f" {self.given / 1e9:.1f} GB; {self.advice}"
            )
