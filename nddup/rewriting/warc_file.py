"""Rewrite a WARC file record by record; each record is a gzip member of its own if the file is gzipped.

Only removed documents and records that cannot be read are left out. Records that hold no document stay: warcinfo,
requests, metadata, revisits, pictures.
"""

from collections.abc import Iterator

from nddup.reading.outcomes import Reject
from nddup.reading.streams import Expanded
from nddup.reading.warc_pieces import walk_warc
from nddup.rewriting.tag_records import tag_warc
from nddup.rewriting.verdicts import Reader, Tags, Verdicts

Member = bytes | None
"""Bytes of a record, or None at its end."""


def rewrite_warc(stream: Expanded, verdicts: Verdicts, max_record: int) -> Iterator[Member]:
    """Yield the bytes of the records as the verdicts say, and None after each record.

    Raises:
        RewriteError: if the file has more or fewer records than the run found, or already has tags.

    Cost: linear; no record is parsed. Memory: `max_record`; a longer record is passed on in pieces.
    """
    reader = Reader(verdicts)
    stays = True
    for piece in walk_warc(stream, max_record=max_record):
        if isinstance(piece, Reject):  # the stream is damaged and ends here
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
