"""The storage back ends of a repository: a folder of this machine, or a URL that `fsspec` opens (`s3://…`).

May import `storage`, `scanning` and the errors. Start with `place`.
"""
