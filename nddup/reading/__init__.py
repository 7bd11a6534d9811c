"""From the bytes of a file to records and their text. Pure: imports only `nddup.arrays` and `nddup.errors`.

`formats` declares every format; `detect` tells which one a file is in; `records` turns one record into fields and
text. A new format starts in `formats`.
"""
