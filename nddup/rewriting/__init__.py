"""Rewrite the files of a collection: without the removed documents, or with four more fields in every record.

May import `reading` and the ground. Nothing here opens or writes a file: bytes in, bytes out, the same for every
engine. Start reading at `rewrite_file`.
"""
