"""Local paths, as the user writes them and as Java writes them."""

import os
import re
from urllib.parse import quote, unquote, urlsplit

from nddup.errors import ConfigError
from nddup.redaction import drop_login

PLAIN = "/-_.!~*'():@&=+$,;"
"""Characters that Java does not escape in the path of a URI, besides letters, digits and non-ASCII characters."""


def local_path(path: str) -> str:
    """Return the absolute local path of a path as the user writes it, or of a URI `file:/…`.

    The text alone decides: `a/../b` is `b`, even if `a` is a link.

    Raises:
        ConfigError: for a URI of another file system.

    Example:
        >>> local_path("file:/tmp/a%20b"), local_path("/tmp//x/../a%20b")
        ('/tmp/a b', '/tmp/a%20b')
    """
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", path):
        scheme, rest, inner = path.partition(":")[0], path.partition(":")[2], urlsplit(path)
        if scheme.lower() != "file" or inner.netloc:
            raise ConfigError(f"{drop_login(path)}: not a path of this machine")
        is_written = re.fullmatch(rf"(?:[\w{re.escape(PLAIN)}]|%[0-9A-Fa-f]{{2}})*", rest)
        path = unquote(inner.path) if is_written else "/" + rest.lstrip("/")
    return "/" + os.path.normpath(os.path.join(os.getcwd(), path)).lstrip("/")  # noqa: PTH109, PTH118


def uri_of(path: str) -> str:
    """Return the URI `file:/…` that Java makes of an absolute path.

    Example:
        >>> uri_of("/tmp/a b[1]/роза%.xml")
        'file:/tmp/a%20b%5B1%5D/роза%25.xml'
    """
    return "file:" + "".join(_quoted(character) for character in path)


def _quoted(character: str) -> str:
    """Escape a character as Java does, which keeps non-ASCII characters except blanks and controls."""
    if character.isascii():
        return quote(character, safe=PLAIN)
    return quote(character) if character.isspace() or not character.isprintable() else character
