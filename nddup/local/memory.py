"""The memory that a run on one machine may take: each step says what it needs before it takes it.

    512 MB                                      Python, its libraries, the kernels, worker processes
    7 times the rows                            that were read, as they lie in memory, until they are tables
    1,000 a document and 60 an id of a sketch   from the documents to the distinct sketches and their postings
    and beside these, in each step
        match        100 a pair of distinct sketches
        expand       120 a pair of documents, and four times an id
        components   150 a pair of distinct sketches
        mine         what `bound_memory` says of the largest components, one for each thread, and 20 a member of a set
        name         120 a member of a cluster, and four times an id

A step that cannot know its size beforehand asks again whenever a part of it is done.
"""

from dataclasses import dataclass

from nddup.errors import NeedsSparkError

BASE = 1 << 29
OF_ROWS = 7.0
OF_DOCUMENT, OF_POSTING = 1_000, 60
OF_MATCH, OF_EDGE, OF_PAIR, OF_SET_MEMBER, OF_MEMBER = 100, 150, 120, 20, 120
OF_ID = 4
"""Copies of the ids of a row while its table is made."""


@dataclass
class Memory:
    """What a run may take, and what its documents take already.

    Attributes:
        given: bytes; None: nothing is refused.
        advice: what the user is told to do where that is too little.
        held: bytes of what stays through all steps that follow.
    """

    given: int | None = None
    advice: str = "go on with --engine spark --resume"
    held: float = BASE

    def hold(self, documents: int, postings: int) -> None:
        """Require what the documents take while pairs and clusters are found; it counts in all that follows."""
        self.held = BASE + OF_DOCUMENT * documents + OF_POSTING * postings
        self.require(0, f"the {documents:,} documents")

    def require(self, size: float, what: str) -> None:
        """Stop where a step needs more than there is.

        Args:
            size: bytes that the step needs beside what is held.
            what: needs them, for the message.

        Raises:
            NeedsSparkError: saying how to go on. What earlier steps saved stays in the folder.
        """
        needed = self.held + size
        if self.given is not None and needed > self.given:
            raise NeedsSparkError(
                f"{what} may need {needed / 1e9:.1f} GB of memory, more than local.memory {self.given / 1e9:.1f} GB"
                f"; {self.advice}"
            )
