"""From the bytes of a file to records, and from records to text. Touches no files and no Spark: it is given bytes.

May import `nddup.arrays` and `nddup.errors` only. `formats` declares every format, and a format that is another set of
paths is one more entry there; `detect` recognises the format of a file, `records` parses a record and takes its text.
Files that are not cut at a separator are read by `containers`.
"""
