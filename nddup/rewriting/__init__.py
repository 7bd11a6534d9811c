"""The files of a collection written again: without the removed documents, or with four fields more in every record.

It may import `reading` and the ground. Nothing here opens or writes a file: bytes in, bytes out, the same for every
engine. Start reading at `rewrite_file`.
"""
