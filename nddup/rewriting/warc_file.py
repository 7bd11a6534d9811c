"""A WARC file written again: record by record, each a member of its own where the file is compressed.

Only documents that are removed, and records that cannot be read, are left out. Records that hold no document stay:
warcinfo, requests, metadata, revisits, pictures.
"""

from collections.abc import Iterator

from nddup.reading.outcomes import Reject
from nddup.reading.streams import Expanded
from nddup.reading.warc_pieces import walk_warc
from nddup.rewriting.tag_records import tag_warc
from nddup.rewriting.verdicts import Reader, Tags, Verdicts

Member = bytes | None
"""Bytes, or None where a record ends."""


def rewrite_warc(stream: Expanded, verdicts: Verdicts, max_record: int) -> Iterator[Member]:
    """The records of a file, as its verdicts say, and None behind each.

    Raises:
        RewriteError: if the file has more or fewer records than the run found, or tags already.

    Cost: linear; no record is parsed. Memory: a record, of a longer one a piece.
    """
    reader = Reader(verdicts)
    stays = True
    for piece in walk_warc(stream, max_record=max_record):
        if isinstance(piece, Reject):  # the stream ends here, damaged
            reader.next()
            break
        if piece.begins:
            verdict = reader.next() if piece.is_record else True
            if reader.is_over:
                break
            stays = verdict is not False
            if isinstance(verdict, Tags):
                yield tag_warc(piece.header, verdict)
            elif stays:
                yield piece.header
        if stays:
            yield piece.data
            if piece.ends:
                yield None
    reader.require_all(verdicts.count)
