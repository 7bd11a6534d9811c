"""From the bytes of a file to records, and from records to text. Touches no files and no Spark: it is given bytes.

May import `nddup.arrays` and `nddup.errors` only. `formats` declares every format; `detect` recognises the format of a
file, `records` parses a record and takes its text.

A new format that is another set of paths is one entry in `formats`; one that is read as a stream also gets a reader in
`containers`; one that is cut at a separator a head in `detect` and a branch in `records`. Its name goes into
`settings.schema`, and a golden file into tests/reading.
"""
