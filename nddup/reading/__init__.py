"""From the bytes of a file to records, and from records to text. Opens no files and uses no Spark: callers pass bytes.

May import only `nddup.ground` and `nddup.errors`. `formats` declares every format, `detect` recognises the
format of a file, and `records` parses a record and extracts its text.

To add a format: if only its paths are new, add an entry to `formats`. A new kind has a row in `FILE_KINDS` there. If it
is read as a stream, also add a reader to `containers`, and one that writes it again to `nddup.rewriting`. If it is cut
at a separator, also add a head to `detect` and a branch to `records`. Then add a golden file to tests/reading. The
setting `input.format` takes its choices from `formats`. A compression is one entry in `streams`.
"""
