"""Where a repository lies: a folder of this machine, or a place that `fsspec` opens (`s3://…`).

May import `storage`, `scanning` and the errors. Start with `place`.
"""
