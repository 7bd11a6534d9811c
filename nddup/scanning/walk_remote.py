"""The files below INPUT addresses elsewhere: which are skipped, and how each is named, as `walk` has it for folders."""

from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

from nddup.errors import ConfigError, UnreachableError, first_line
from nddup.remote.addresses import WEB, RemoteFile, is_bucket, scheme_of, spell_bare
from nddup.remote.kept_copies import find_kept, list_kept
from nddup.scanning.input_files import (
    BESIDE_WHY,
    RUN,
    Placed,
    percent_spelled,
    run_input,
    table_input,
    table_of_others,
    why_skipped,
)
from nddup.scanning.table_snapshots import TablePath, copy_snapshot, find_bucket_table
from nddup.scanning.walk import Walked, members_of


def walk_remote(inputs: Sequence[str]) -> Walked:
    """Find the files of INPUT addresses, which are literal; what lies below one is found at every depth.

    Raises:
        ConfigError: if there is no such file or folder, for a table whose log says which of its files count, or if a
            client is missing.
        UnreachableError: if an address cannot be listed.

    Cost: the requests of one listing, or for a web server one for each file.
    """
    files: dict[str, Placed] = {}
    skipped: dict[str, str] = {}
    repeated, named = [], []
    tables = {url: table for url in inputs if (table := _table_at(url)) is not None}
    for table in tables.values():
        snapshot = copy_snapshot(table)
        named.append(snapshot.name)
        files |= snapshot.placed(_path_of(table.folder).rpartition("/")[0])
    plain = [url for url in inputs if url not in tables]
    for url, listed in zip(plain, list_kept(plain), strict=True):
        base = _path_of(url)
        if "" in listed:
            chosen = {"": (listed[""], False)}
            base = base.rpartition("/")[0]
        else:
            chosen = _choose(url, listed, skipped)
        for below, (file, is_beside) in chosen.items():
            name = below or _path_of(url).rpartition("/")[2]
            if file.url in files:
                repeated.append(spell_bare(file.url))
                continue
            inside = members_of(str(find_kept(file.url))) if name.lower().endswith(".wacz") else []
            for member, size in inside or [("", file.size)]:
                mark = f"!{member}" if member else ""
                path = percent_spelled(f"{base}/{name}{mark}")
                beside = spell_bare(file.url) if is_beside else ""
                files[f"{file.url}{mark}"] = Placed(
                    percent_spelled(base), path, size, file.modified, beside, file.version
                )
    return Walked(files, tuple(sorted(skipped.items())), tuple(repeated), tuple(named))


def _table_at(url: str) -> TablePath | None:
    """Return the table that an address names; None for all else. Raises UnreachableError, if nothing can be listed."""
    try:
        return find_bucket_table(url) if is_bucket(url) else None
    except OSError as error:
        raise UnreachableError(f"{spell_bare(url)}: cannot be listed ({first_line(error)})") from error


def sizes_of_remote(inputs: Sequence[str]) -> list[tuple[str, int]]:
    """Return the name and size of each file at and below some addresses; errors as `walk_remote`."""
    tables = {url: table.folder for url in inputs if (table := _table_at(url)) is not None}
    listed = list_kept([tables.get(url, url) for url in inputs])
    return [(file.url, file.size) for files in listed for file in files.values()]


def _path_of(url: str) -> str:
    if scheme_of(url) in WEB:
        address = urlsplit(url)
        path = unquote(address.path, errors="surrogateescape").rstrip("/")
        if not path.rpartition("/")[2]:
            raise ConfigError(f"INPUT {spell_bare(url)}: expected the address of a file; a web server lists no folder")
        return f"{address.hostname}{path}"
    return url.partition("://")[2].rstrip("/")


def _choose(url: str, listed: dict[str, RemoteFile], skipped: dict[str, str]) -> dict[str, tuple[RemoteFile, bool]]:
    """Return the files below an address that are read, each with whether its name is one of what stands beside."""
    names: dict[str, set[str]] = {}
    for below in listed:
        parts = below.split("/")
        for depth in range(len(parts)):
            names.setdefault("/".join(parts[:depth]), set()).add(parts[depth])
    if RUN in names.get("", ()):
        raise run_input(spell_bare(url))
    for folder in sorted(names):
        if "_delta_log" in names[folder] or not folder.rpartition("/")[2].startswith(("_", ".")):
            what = table_of_others(names[folder], lambda name, at=folder: names.get(f"{at}/{name}".lstrip("/"), ()))  # type: ignore[misc]
            if what is not None:
                raise table_input(f"{spell_bare(url)}/{folder}".rstrip("/"), what)
    runs = {folder for folder, inside in names.items() if folder and RUN in inside}
    chosen, whole = {}, url.rstrip("/")
    for below in sorted(listed):
        parts = below.split("/")
        above = ["/".join(parts[:depth]) for depth in range(1, len(parts))]
        whys = [
            ("/".join(parts[:depth]), "results of a run") for depth in range(1, len(parts)) if above[depth - 1] in runs
        ]
        whys += [
            (path, why)
            for depth, path in enumerate([*above, below], 1)
            if (why := why_skipped(parts[depth - 1], is_folder=depth < len(parts))) not in (None, BESIDE_WHY)
        ]
        if whys:
            path, why = min(whys, key=lambda one: len(one[0]))
            skipped[spell_bare(f"{whole}/{path}")] = str(why)
        else:
            chosen[below] = (listed[below], why_skipped(parts[-1], is_folder=False) == BESIDE_WHY)
    return chosen
