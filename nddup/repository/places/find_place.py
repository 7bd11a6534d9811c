"""Find the place that a path or a URL names."""

import re
from pathlib import Path

from nddup.repository.places.disk_place import DiskPlace
from nddup.repository.places.place import Place

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")


def find_place(path: str | Path) -> Place:
    """Return a folder of this machine, or a bucket for a URL with another scheme than `file`.

    Raises:
        ConfigError: if the client for the URL is not installed, or refuses the URL.

    Example:
        >>> str(find_place("/srv//pages")), str(find_place("file:/srv/pages"))
        ('/srv/pages', '/srv/pages')
    """
    scheme = _SCHEME.match(str(path))
    if scheme is None or scheme[1].lower() == "file":
        return DiskPlace(str(path))
    from nddup.repository.places.bucket_place import BucketPlace  # noqa: PLC0415 - rarely needed

    return BucketPlace(str(path))
