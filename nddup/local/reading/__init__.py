"""Worker processes read and sketch the files; the same scan reads texts and counts terms.

`scan` cuts the files into tasks; `workers` hands these to its processes, each of which runs `worker`.
"""
