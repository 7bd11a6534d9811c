"""The files below the INPUT paths of a run: which are skipped, and how each is named, in the tables and for Java."""

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple
from unicodedata import category
from urllib.parse import quote, unquote, urlsplit

from nddup.errors import ConfigError
from nddup.ground.own_files import absolute
from nddup.ground.shown import drop_login

PLAIN = "/-_.!~*'():@&=+$,;"
"""Characters that Java does not escape in the path of a URI, besides letters, digits and non-ASCII characters."""

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")

RUN = "_RUN.json"
"""The file that marks the folder of a run: below an INPUT such a folder holds results, not documents."""

BESIDE = re.compile(
    r"(?!.*\.(x?html?|shtml|xht|jsonl?|ndjson|csv|tsv|xml|warc|parquet|eml|mbox)(\.(gz|bz2|zst|xz))?$)"
    r"(readme|licen[cs]e|notice|copying|changelog)"
    r"([._-](ar|cs|da|de|el|en|es|fa|fi|fr|hu|ja|ko|nl|pl|pt|ro|ru|sv|tr|uk|vi|zh)([_-](?-i:[A-Z]{2}))?)?(\.\w{1,8})?(\.(gz|bz2|zst|xz))?",
    re.IGNORECASE,
)
"""Names of files that accompany a collection: `LICENSE`, `readme.txt`, `readme.de.md`, but no page or data of such a
name, nor a name that goes on with words (`notice-my.txt`), of which the code of a language is none: those listed, which
are no English words. Beside others such a file is skipped; alone or as an INPUT it is read."""

CHECKSUMS = re.compile(r"(md5|sha\d*)sums?([.-]\w+)?|.*\.(md5|sha\d+|crc)", re.IGNORECASE)
"""Names of lists of checksums, which are skipped below an INPUT."""

ASSET = re.compile(
    r".*\.(css|m?js|map|png|jpe?g|gif|webp|avif|svgz?|ico|bmp|tiff?|woff2?|ttf|otf|eot|mp[34]|m4[av]|web[am]|og[gva]|wav"
    r"|avi|mov|swf|dtd|xsd)",
    re.IGNORECASE,
)
"""Names of what pages are shown with. Beside other files such a file is skipped, unless it begins as a page."""

ASSET_WHY = "images, styles, scripts and the like of pages; such a file alone is read"

BESIDE_WHY = "named as a readme, licence, notice or changelog; such a file is read if it is itself an INPUT"
"""Why such a file is skipped, as a message; a summary shows it up to the semicolon."""

CHECKSUMS_WHY = "named as a list of checksums; such a file is read if it is itself an INPUT"

_COLUMN = re.compile(r"([^=]+)=(.*)", re.DOTALL)
"""The name of a folder that is a column of the records below it, as Hive lays tables out: `lang=en`."""

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""What stands for null in such a name."""

OF_FSSPEC = ("github", "zip", "memory", "simplecache", "filecache", "blockcache", "reference", "libarchive")
"""Schemes that only fsspec opens."""


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
    return "/" + os.path.normpath(absolute(path)).lstrip("/")


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
    """Escape a character as Java does, which keeps non-ASCII characters except blanks and controls.

    Spark gives paths back in this form, and sources are found by them: marks of direction and unassigned ones stay.
    """
    if not character.isprintable() and not is_utf8(character):
        return quote(character, errors="surrogateescape")
    if character.isascii():
        return quote(character, safe=PLAIN)
    return quote(character) if category(character) in {"Zs", "Zl", "Zp", "Cc"} else character


@lru_cache(maxsize=4096)
def path_columns(folder: str) -> Mapping[str, str | None]:
    """Return the columns of the records below a folder, by the names in its path; the innermost counts.

    Example:
        >>> path_columns("in/lang=en/day=2024%2D05"), path_columns("lang=__HIVE_DEFAULT_PARTITION__")
        ({'lang': 'en', 'day': '2024-05'}, {'lang': None})
    """
    matches = [name for name in map(_COLUMN.fullmatch, folder.split("/")) if name]
    return {unquote(name[1]): None if name[2] == NO_VALUE else unquote(name[2]) for name in matches}


def columns_of(source: str) -> Mapping[str, str | None]:
    """Return the columns of the records in a file; do not change them."""
    return path_columns(source.rpartition("/")[0])


def why_skipped(name: str, *, is_folder: bool) -> str | None:
    """Return why a file or folder of this name is skipped below an INPUT; None if it is not."""
    if name.startswith(("_", ".")) and not (is_folder and _COLUMN.fullmatch(name)):
        return "hidden"
    if is_folder:
        return None
    if CHECKSUMS.fullmatch(name):
        return CHECKSUMS_WHY
    return BESIDE_WHY if BESIDE.fullmatch(name) else None


def count_reasons(whys: Iterable[str]) -> str:
    """Return how many files were skipped for each reason, in one line; of a reason, what comes before its semicolon.

    Example:
        >>> count_reasons(["hidden", "a socket", "hidden"])
        '1 a socket, 2 hidden'
    """
    counted = Counter(why.partition(";")[0] for why in whys)
    return ", ".join(f"{count:,} {why}" for why, count in sorted(counted.items()))


def refuse_foreign(paths: Iterable[str]) -> None:
    """Refuse an address that nothing here opens, with what to do instead.

    Raises:
        ConfigError: for an empty path, for addresses that only fsspec opens, and chains of them with `::`.
    """
    for path in paths:
        if not path:
            raise missing_input(path)
        scheme, has_scheme, rest = path.partition("://")
        if scheme == "hf" and has_scheme and not re.match(r"datasets/[^/]+/[^/]+", rest):
            raise ConfigError(f"INPUT {path}: expected hf://datasets/OWNER/NAME, with @REVISION and a path if need be")
        if has_scheme and (scheme in OF_FSSPEC or "::" in scheme):
            raise ConfigError(
                f"INPUT {drop_login(path)}: nddup opens paths of this machine, s3, gs, az, hf and https, and what"
                " Hadoop opens (s3a, gs, abfss, hdfs); copy it to one of them first"
            )


def split_version(path: str) -> tuple[str, int | None]:
    """Return the path of a table and the version after its last `@`; None if it has none, or is a path itself.

    Example:
        >>> split_version("/no/pages@12"), split_version("/no/pages")
        (('/no/pages', 12), ('/no/pages', None))
    """
    folder, mark, version = path.rstrip("/").rpartition("@")
    is_version = mark and version.isascii() and version.isdigit() and not os.path.lexists(path)
    return (folder, int(version)) if is_version else (path, None)


def missing_input(text: str) -> ConfigError:
    """Make the error for a missing INPUT; it explains a wildcard or a `~` that the shell did not expand."""
    quoted = ""
    if not text:
        return ConfigError("INPUT: expected a file or folder, got an empty path; is a variable of the shell not set?")
    if set("*?[") & set(text):
        quoted = "; wildcards are taken literally: leave out the quotes, or name the folder"
    elif text.startswith("~"):
        quoted = "; ~ is taken literally: leave out the quotes, or write the path from the root"
    return ConfigError(f"INPUT {text}: no such file or folder{quoted}")


def table_of_others(names: Collection[str], names_in: Callable[[str], Iterable[str]]) -> str | None:
    """Return which table a folder holds that only its own library reads, and how; None if it holds none.

    Args:
        names: of what is in the folder.
        names_in: gives the names in one of its folders.

    Example:
        >>> table_of_others(["dataset_info.json", "state.json", "data-00000-of-00001.arrow"], lambda name: [])
        'a dataset as datasets saves it; read it with datasets.load_from_disk(path)'
    """
    log = "whose log says which of its files count; read it with"
    if "_delta_log" in names:
        return f"a Delta table, {log} pip install 'nddup[delta]' and its own path as INPUT"
    if ".hoodie" in names:
        return f'a Hudi table, {log} spark.read.format("hudi").load(path)'
    signs = names_in("metadata") if "metadata" in names else ()
    if any(name.endswith(".metadata.json") or name == "version-hint.text" for name in signs):
        return f"an Iceberg table, {log} pip install 'nddup[iceberg]' and its own path as INPUT"
    if "dataset_info.json" in names and any(name.endswith(".arrow") for name in names):
        way = "load_from_disk(path)" if "state.json" in names else "Dataset.from_file(file)"
        return f"a dataset as datasets saves it; read it with datasets.{way}"
    return None


def run_input(text: str) -> ConfigError:
    """Make the error for an INPUT that is the folder of a run: its tables are no documents."""
    return ConfigError(
        f"INPUT {text}: holds the results of a run, which are no documents; give the files that the run read, or its"
        " folder kept (output.kept)"
    )


def table_input(text: str, what: str) -> ConfigError:
    """Make the error for an INPUT with such a table."""
    return ConfigError(
        f"INPUT {text}: {what}; or give what that reads to nddup.find_duplicates, or write it as plain Parquet"
    )


@dataclass(frozen=True)
class InputFile:
    """One collection file.

    Attributes:
        path: how the engine opens it: a URI for Spark, a local path for the engine without Spark.
        source: its name in the tables.
        modified: time of its last change, in milliseconds of its file system's clock.
        version: what a server says that changes with its content; empty for files of this machine.
    """

    path: str
    source: str
    size: int
    modified: int
    version: str = ""

    @property
    def state(self) -> list[Any]:
        """What is noted of it: another state is another content."""
        return [self.size, self.modified, *([self.version] if self.version else [])]


@dataclass(frozen=True)
class Listing:
    """The files of all inputs, sorted by source; the skipped ones, each with the reason; repeated inputs; tables."""

    files: tuple[InputFile, ...]
    skipped: tuple[tuple[str, str], ...]
    repeated: tuple[str, ...]
    tables: tuple[str, ...] = ()


def list_asked(list_inputs: Callable[[list[str]], Listing], path: str, asked: str) -> tuple[InputFile, ...]:
    """Return the file that an option or a setting names, or those of a folder.

    Args:
        list_inputs: lists the files at and below INPUT paths.
        asked: the option or setting, for messages.

    Raises:
        ConfigError: as `list_inputs`, under the name of the option.
    """
    try:
        return list_inputs([path]).files
    except ConfigError as error:
        fault = str(error).removeprefix("INPUT ").partition(", which are no documents")[0]
        raise ConfigError(f"{asked} {fault}") from error


class Placed(NamedTuple):
    """A file found: the folder that its name is relative to, its full path, its bytes and its time in milliseconds.

    `beside` is the address of a readme or licence in a folder, which is skipped beside files other than assets;
    `version` as of `InputFile`.
    """

    base: str
    path: str
    size: int
    modified: int
    beside: str = ""
    version: str = ""


def make_listing(
    placed: Mapping[str, Placed],
    skipped: Iterable[tuple[str, str]],
    repeated: Iterable[str],
    tables: Iterable[str] = (),
) -> Listing:
    """Name the files found, by how the engine opens them, and sort them by their names.

    An INPUT inside a table of Hive is named from the folder of the table on: its records keep their columns.
    """
    if not all(place.beside or ASSET.fullmatch(place.path) for place in placed.values()):
        skipped = [*skipped, *((place.beside, BESIDE_WHY) for place in placed.values() if place.beside)]
        placed = {path: place for path, place in placed.items() if not place.beside}
    sources = distinct_sources({path: (_above_columns(place.base), place.path) for path, place in placed.items()})
    files = [
        InputFile(path, sources[path], place.size, place.modified, place.version) for path, place in placed.items()
    ]
    files.sort(key=lambda file: file.source.encode())
    return Listing(tuple(files), tuple(sorted(skipped)), tuple(repeated), tuple(tables))


def _above_columns(folder: str) -> str:
    while _COLUMN.fullmatch(folder.rpartition("/")[2]):
        folder = folder.rpartition("/")[0]
    return folder


def distinct_sources(paths: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """Name each file for the tables: its path below its INPUT, with parent folders added where two names are equal.

    Args:
        paths: file -> (the folder its name is relative to, its full path), both decoded and without a `/` at the end.

    Returns:
        File -> source. Files that all parent folders do not distinguish, in different file systems, keep their whole
        address, without any login in it.

    Example:
        >>> distinct_sources({"a": ("/x/2019", "/x/2019/1.xml"), "b": ("/x/2020", "/x/2020/1.xml")})
        {'a': '2019/1.xml', 'b': '2020/1.xml'}
    """
    depth = dict.fromkeys(paths, 0)
    while True:
        names = {file: _lengthened(base, path, depth[file]) for file, (base, path) in paths.items()}
        taken: dict[str, list[str]] = {}
        for file, name in names.items():
            taken.setdefault(name, []).append(file)

        clashing = [file for files in taken.values() if len(files) > 1 for file in files]
        growing = [file for file in clashing if depth[file] < paths[file][0].count("/")]
        if not growing:
            return {file: (drop_login(file) if file in clashing else name) for file, name in names.items()}
        for file in growing:
            depth[file] += 1


def _lengthened(base: str, path: str, parents: int) -> str:
    folders = base.split("/")
    return "/".join([*folders[len(folders) - parents :], path[len(base) :].lstrip("/")])
