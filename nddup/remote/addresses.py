"""The addresses of files elsewhere that this process opens itself: buckets, data sets of the Hub, files on web servers.

is_remote     whether an address is one of them; `s3a://`, `hdfs://` and the like are Hadoop's
is_bucket     whether it may hold results too
spell_bare    the address as it is noted and shown, without what lets others in
"""

import re
from typing import NamedTuple

from nddup.ground.shown import HIDDEN, drop_login

EXTRAS = {"s3": "s3", "gs": "gs", "az": "az", "hf": "hf", "https": "", "http": ""}
"""The extra of the package that brings the client of each scheme; none where Python's own is enough."""

BUCKETS = frozenset(["s3", "gs", "az"])

WEB = frozenset(["https", "http"])

_SECRET = re.compile(r"(?i)([?&][^=&#]*(?:sig|token|secret|credential|passw|api_?key|auth)[^=&#]*=)[^&#]*")
"""A value in the query of an address whose name says that it lets its holder in."""


class RemoteFile(NamedTuple):
    """A file as it was listed.

    Attributes:
        modified: when it was last written, in milliseconds; 0 where its server does not say.
        version: its ETag, or the hash of its content; empty where its server says neither.
    """

    url: str
    size: int
    modified: int
    version: str


def scheme_of(path: str) -> str:
    """Return the scheme of an address, in lower case; empty for a path."""
    scheme, mark, _ = path.partition("://")
    return scheme.lower() if mark else ""


def is_remote(path: str) -> bool:
    """Return whether an address is of a file elsewhere that this process opens itself.

    Example:
        >>> [is_remote(path) for path in ("s3://box/a", "s3a://box/a", "/s3://box", "HTTPS://host/a")]
        [True, False, False, True]
    """
    return scheme_of(path) in EXTRAS


def is_bucket(path: str) -> bool:
    """Return whether an address is in a bucket, which results can be written to."""
    return scheme_of(path) in BUCKETS


def spell_bare(url: str) -> str:
    """Return an address without its login, and without the values in its query that let their holder in.

    Example:
        >>> spell_bare("https://host/a.jsonl?X-Amz-Signature=1f&part=2")
        'https://host/a.jsonl?X-Amz-Signature=*********(redacted)&part=2'
    """
    return _SECRET.sub(lambda match: f"{match[1]}{HIDDEN}", drop_login(url))
