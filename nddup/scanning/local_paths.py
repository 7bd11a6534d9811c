"""Local paths, as the user writes them and as Java writes them."""

import os
import re
from urllib.parse import quote, unquote, urlsplit

from nddup.errors import ConfigError
from nddup.redaction import drop_login

PLAIN = "/-_.!~*'():@&=+$,;"
"""Characters that Java does not escape in the path of a URI, besides letters, digits and non-ASCII characters."""

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


def local_path(path: str) -> str:
    """Return the absolute local path of a path as the user writes it, or of a URI `file:/…`.

    The text alone decides: `a/../b` is `b`, even if `a` is a link.

    Raises:
        ConfigError: for a URI of another file system.

    Example:
        >>> local_path("file:/tmp/a%20b"), local_path("/tmp//x/../a%20b")
        ('/tmp/a b', '/tmp/a%20b')
    """
    if _URI.match(path):
        scheme, rest, inner = path.partition(":")[0], path.partition(":")[2], urlsplit(path)
        if scheme.lower() != "file" or inner.netloc:
            raise ConfigError(f"{drop_login(path)}: not a path of this machine")
        is_written = re.fullmatch(rf"(?:[\w{re.escape(PLAIN)}]|%[0-9A-Fa-f]{{2}})*", rest)
        path = unquote(inner.path, errors="surrogateescape") if is_written else "/" + rest.lstrip("/")
    return "/" + os.path.normpath(os.path.join(os.getcwd(), path)).lstrip("/")  # noqa: PTH109, PTH118


def is_of_this_machine(path: str) -> bool:
    """Return whether a path is plain or a URI `file:/…`. A name with a colon, such as `run-10:30`, is no URI.

    Example:
        >>> [is_of_this_machine(path) for path in ("run-10:30", "a:b/c", "FILE:/a", "hdfs:/a", "s3://box/a")]
        [True, True, True, False, False]
    """
    return _URI.match(path) is None or path[:6].lower() == "file:/"


def uri_of(path: str) -> str:
    """Return the URI `file:/…` that Java makes of an absolute path; bytes that are not UTF-8 are escaped.

    A URI stays as it is.

    Example:
        >>> uri_of("/tmp/a b[1]/роза%.xml")
        'file:/tmp/a%20b%5B1%5D/роза%25.xml'
    """
    return path if path.startswith("file:/") else "file:" + "".join(_quoted(character) for character in path)


def is_utf8(path: str) -> bool:
    """Return whether the bytes of a path, or those that a URI `file:/…` stands for, are UTF-8.

    Java cannot open a file of another name.

    Example:
        >>> is_utf8("/tmp/a%E9"), is_utf8("file:/tmp/a%E9"), is_utf8("/tmp/a" + chr(0xDCE9))
        (True, False, False)
    """
    try:
        (unquote(path, errors="strict") if path.startswith("file:/") else path).encode()
    except UnicodeError:
        return False
    return True


def address_of(path: str) -> str:
    """Return an absolute path as a text that any file or terminal takes: a URI if its bytes are not UTF-8."""
    return path if is_utf8(path) else uri_of(path)


def percent_spelled(path: str) -> str:
    """Return a path with each byte that is not UTF-8 as `%` and two digits, as in its URI: the spelling of a `source`.

    Example:
        >>> percent_spelled("in/caf" + chr(0xDCE9) + ".html"), percent_spelled("роза%.html")
        ('in/caf%E9.html', 'роза%.html')
    """
    if path.isascii() or is_utf8(path):
        return path
    return "".join(c if is_utf8(c) else quote(c, errors="surrogateescape") for c in path)


def _quoted(character: str) -> str:
    """Escape a character as Java does, which keeps non-ASCII characters except blanks and controls."""
    if not character.isprintable() and not is_utf8(character):
        return quote(character, errors="surrogateescape")
    if character.isascii():
        return quote(character, safe=PLAIN)
    return quote(character) if character.isspace() or not character.isprintable() else character
