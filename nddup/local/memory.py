"""The memory that a run on one machine may take: each step says how many bytes it needs before it takes them.

    512 MB                                      Python, its libraries, the kernels, worker processes
    7 times the bytes of the rows read          until tables are made of them; twice those of tokens read again
    1,000 a document and 60 an id of a sketch   from the documents to the distinct sketches and their postings
    and on top of these, in each step
        match        100 a pair of distinct sketches
        expand       120 a pair of documents, and four times an id
        components   150 a pair of distinct sketches
        mine         `bound_memory` of the largest components, one for each thread, and 20 a member of a set
        name         120 a member of a cluster, and four times an id

A step whose size is not known beforehand asks again after each of its parts.
"""

from dataclasses import dataclass

from nddup.errors import NeedsSparkError

BASE = 1 << 29
OF_ROWS = 7.0
OF_TOKENS = 2.0
"""Tokens stay in the files that workers wrote, and the threads hold some of them while they compare."""
OF_DOCUMENT, OF_POSTING = 1_000, 60
OF_MATCH, OF_EDGE, OF_PAIR, OF_SET_MEMBER, OF_MEMBER = 100, 150, 120, 20, 120
OF_ID = 4
"""Copies of a row's ids that are held while its table is made."""


@dataclass
class Memory:
    """The memory that a run may take, and the part that its documents already hold.

    Attributes:
        given: limit in bytes; None: no limit.
        advice: what the user is told to do when the limit is too low.
        held: bytes that stay in use through all later steps.
    """

    given: int | None = None
    advice: str = "go on with --engine spark --resume"
    held: float = BASE

    def hold(self, documents: int, postings: int) -> None:
        """Require what the documents take while pairs and clusters are found, and count it in every later step."""
        self.held = BASE + OF_DOCUMENT * documents + OF_POSTING * postings
        self.require(0, f"the {documents:,} documents")

    def require(self, size: float, what: str) -> None:
        """Raise an error if a step needs more than the limit.

        Args:
            size: bytes that the step needs on top of what is held.
            what: the subject of the message: what needs them.

        Raises:
            NeedsSparkError: if that is too much; it says how to go on. What earlier steps saved stays in the folder.
        """
        needed = self.held + size
        if self.given is not None and needed > self.given:
            raise NeedsSparkError(
                f"{what} may need {needed / 1e9:.1f} GB of memory, more than local.memory {self.given / 1e9:.1f} GB"
                f"; {self.advice}"
            )
