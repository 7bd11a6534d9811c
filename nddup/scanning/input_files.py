"""The files below the INPUT paths of a run: which are skipped, and the name of each in the tables."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from nddup.errors import ConfigError
from nddup.redaction import drop_login

RUN = "_RUN.json"
"""The file that marks the folder of a run: below an INPUT such a folder holds results, not documents."""

BESIDE = re.compile(
    r"(readme|licen[cs]e|notice|copying|changelog)([.-].*)?|(md5|sha\d*)sums?.*|.*\.(md|tsv|dtd|xsd|md5|sha\d+|crc)",
    re.IGNORECASE,
)
"""Names of files that accompany a collection. Inside a folder they are skipped; as an INPUT they are read."""

BESIDE_WHY = "named as a readme, licence, notice, checksum or listing; such a file is read if it is itself an INPUT"
"""Why such a file is skipped, as a message; a summary shows it up to the semicolon."""


def why_skipped(name: str, *, is_folder: bool) -> str | None:
    """Return why a file or folder of this name is skipped below an INPUT; None if it is not."""
    if name.startswith(("_", ".")):
        return "hidden"
    return BESIDE_WHY if not is_folder and BESIDE.fullmatch(name) else None


def count_reasons(whys: Iterable[str]) -> str:
    """Return how many files were skipped for each reason, in one line; of a reason, what comes before its semicolon.

    Example:
        >>> count_reasons(["hidden", "a socket", "hidden"])
        '1 a socket, 2 hidden'
    """
    counted = Counter(why.partition(";")[0] for why in whys)
    return ", ".join(f"{count:,} {why}" for why, count in sorted(counted.items()))


def is_note(path: str) -> bool:
    """Return whether a file named as in `BESIDE` may be a document: Markdown, but not a README, licence or the like."""
    name = path.rpartition("/")[2].lower()
    return name.endswith(".md") and not name.startswith(
        ("readme", "license", "licence", "notice", "copying", "changelog")
    )


def missing_input(text: str) -> ConfigError:
    """Make the error for a missing INPUT; it explains a wildcard or a `~` that the shell did not expand."""
    quoted = ""
    if set("*?[") & set(text):
        quoted = "; wildcards are taken literally: leave out the quotes, or name the folder"
    elif text.startswith("~"):
        quoted = "; ~ is taken literally: leave out the quotes, or write the path from the root"
    return ConfigError(f"INPUT {text}: no such file or folder{quoted}")


def table_with_log(names: Collection[str], names_in: Callable[[str], Iterable[str]]) -> tuple[str, str] | None:
    """Return what table with a log a folder holds, and what reads it; None if it holds none.

    Args:
        names: of what is in the folder.
        names_in: gives the names in one of its folders.

    Example:
        >>> table_with_log(["_delta_log", "part-0.parquet"], lambda name: [])
        ('a Delta table', 'deltalake.DeltaTable(path).to_pyarrow_table()')
    """
    if "_delta_log" in names:
        return "a Delta table", "deltalake.DeltaTable(path).to_pyarrow_table()"
    if ".hoodie" in names:
        return "a Hudi table", 'spark.read.format("hudi").load(path)'
    signs = names_in("metadata") if "metadata" in names else ()
    if any(name.endswith(".metadata.json") or name == "version-hint.text" for name in signs):
        return "an Iceberg table", "pyiceberg.table.StaticTable.from_metadata(file).scan().to_arrow()"
    return None


def table_input(text: str, what: tuple[str, str]) -> ConfigError:
    """Make the error for an INPUT with such a table: some of its files hold deleted or replaced rows."""
    return ConfigError(
        f"INPUT {text}: {what[0]}, whose log says which of its files count; read it with {what[1]} and give that to"
        " nddup.find_duplicates, or write it as plain Parquet; files that are named one by one are read as they are"
    )


@dataclass(frozen=True)
class InputFile:
    """One collection file.

    Attributes:
        path: how the engine opens it: a URI for Spark, a local path for the engine without Spark.
        source: its name in the tables.
        size: stored bytes.
        modified: time of its last change, in milliseconds of its file system's clock.
    """

    path: str
    source: str
    size: int
    modified: int


@dataclass(frozen=True)
class Listing:
    """The files of all inputs, sorted by source; the skipped files, each with the reason; the repeated inputs."""

    files: tuple[InputFile, ...]
    skipped: tuple[tuple[str, str], ...]
    repeated: tuple[str, ...]


class Placed(NamedTuple):
    """A file found: the folder that its name is relative to, its full path, its bytes and its time in milliseconds."""

    base: str
    path: str
    size: int
    modified: int


def make_listing(found: Mapping[str, Placed], skipped: Iterable[tuple[str, str]], repeated: Iterable[str]) -> Listing:
    """Name the files found, by how the engine opens them, and sort them by their names."""
    sources = distinct_sources({path: place[:2] for path, place in found.items()})
    files = [InputFile(path, sources[path], place.size, place.modified) for path, place in found.items()]
    files.sort(key=lambda file: file.source.encode())
    return Listing(tuple(files), tuple(skipped), tuple(repeated))


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
    """Return a path relative to its base, preceded by the last `parents` folders of the base."""
    folders = base.split("/")
    return "/".join([*folders[len(folders) - parents :], path[len(base) :].lstrip("/")])
