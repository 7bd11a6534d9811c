"""The output of the commands on a repository: what they print, and the table of matches as a file."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from nddup.ground.shown import counted, one_line
from nddup.repository.bucket_place import find_place
from nddup.repository.commits import Commit, read_commit, versions_in
from nddup.repository.identity import require_format
from nddup.repository.list_matches import Ask
from nddup.repository.segment_files import MATCHES
from nddup.settings.load import read_stored
from nddup.storage.local_storage import written_apart

if TYPE_CHECKING:
    from nddup.repository.write_versions import Written

SHOWN = 20
"""Maximum number of rejects of a batch that are printed."""


def describe_commit(repo: str, written: "Written") -> str:
    """Return one line on the version made and its counts; then the first rejects, and the documents not stored."""
    named = ((name, count) for name, count in written.counts.items() if count and not name.startswith("rejects "))
    counts = ", ".join(_spell_count(name, count) for name, count in named)
    if written.commit is None:
        line = f"{repo}: nothing changed" + (f" ({counts})" if counts else "") + "\n"
    else:
        documents = counted(written.commit.counts["documents"], "document")
        line = f"{repo}: version {written.commit.version}, {documents}; {counts}\n"
    line += "".join(
        f"rejected: record {row['record']} of {one_line(row['source'])}: {row['reason']} ({one_line(row['detail'])})\n"
        for row in written.rejects.slice(0, SHOWN).to_pylist()
    )
    if len(written.rejects) > SHOWN:
        line += f"rejected: {len(written.rejects) - SHOWN:,} more\n"
    reported = written.changes.filter(
        pc.and_(pc.equal(written.changes["was"], "absent"), pc.equal(written.changes["is"], "removed"))
    )
    if written.commit is not None and written.commit.repository["store"] != "kept":
        return line
    unstored = zip(reported["doc_id"].to_pylist(), reported["duplicate_of"].to_pylist(), strict=True)
    return line + "".join(
        f"not stored: {one_line(doc_id)}, a near-duplicate of {one_line(kept)}\n" for doc_id, kept in unstored
    )


def values_of(written: "Written") -> dict[str, Any]:
    """Return the version made, None if none was, its counts, what it changed and the rejects, for JSON."""
    version = written.commit and written.commit.version
    rows = {"changes": written.changes.to_pylist(), "rejects": written.rejects.to_pylist()}
    return {"version": version, "counts": dict(written.counts), **rows}


def history_of(repo: str) -> dict[str, Any]:
    """Return the identity of a repository and its versions, for JSON."""
    commits = _commits_of(repo)
    versions = [
        {"version": one.version, "time": one.time, "what": one.what, "documents": one.digests["documents"][0],
         "counts": dict(one.counts)}
        for one in commits
    ]  # fmt: skip
    named, about = ("mode", "store", "lowest", "recipe"), commits[-1].repository
    return {name: about[name] for name in named} | {"pairs": describe_pairs(about), "versions": versions}


def describe_pairs(about: Mapping[str, Any]) -> str:
    """Return what makes a pair in a repository, from its identity: the threshold, and whether it is exact."""
    pairs = read_stored(about["settings"], origin="the settings of the repository").pairs
    text = f"{pairs.measure} at least {pairs.threshold}"
    if pairs.measure != "resemblance":
        return text
    is_exact = pairs.confirm == "resemblance"
    return f"{text}, exact: all shingles decide" if is_exact else f"{text}, estimated from sketches"


def list_versions(repo: str) -> str:
    """Return the versions, one per line; then the segments of the newest with their sizes."""
    commits = _commits_of(repo)
    newest = commits[-1]
    about = newest.repository
    lines = [
        f"{repo}: mode {about['mode']}, store {about['store']}, lowest {about['lowest']}, {about['recipe']}",
        f"pairs: {describe_pairs(about)}",
    ]
    lines += [_line(commit) for commit in commits]
    lines += [
        f"  {segment.name}   {segment.rows.get('documents', 0):,} documents, {segment.rows.get('sketches', 0):,} new"
        f" sketches, {segment.size:,} bytes"
        for segment in newest.segments
    ]
    return "".join(one_line(line) + "\n" for line in lines)


def _commits_of(repo: str) -> list[Commit]:
    """Return the versions of a repository. Raises OutputError for one that this version cannot go on with."""
    where = find_place(repo)
    commits = [read_commit(where, version) for version in versions_in(where)]
    require_format(commits[-1].repository, repo=repo)
    return commits


def _line(commit: Commit) -> str:
    named = ("added", "replaced", "removed", "unchanged", "rejects")
    counts = ", ".join(_spell_count(name, commit.counts[name]) for name in named if commit.counts.get(name))
    documents = commit.digests["documents"][0]
    noun = "document " if documents == 1 else "documents"
    return f"{commit.version:>6}  {commit.time}  {commit.what:<8} {documents:>10,} {noun}   {counts}".rstrip()


def _spell_count(name: str, count: int) -> str:
    return counted(count, name.removesuffix("s")) if name.endswith("s") else f"{count:,} {name}"


def write_matches(tables: Sequence[pa.Table], ask: Ask, output: str | None) -> pa.Table:
    """Join MATCHES of several repositories, and write them to `matches/` in the output folder if one is given.

    A query has a row without a match only if no repository has one; `top` counts the matches of all together.

    Raises:
        OutputError: if they cannot be written.
    """
    matches = tables[0] if len(tables) == 1 else _join(tables, ask)
    if output is not None:
        from nddup.storage.local_folder import write_tables  # noqa: PLC0415 - most queries write nothing

        with written_apart(output) as apart:
            write_tables(apart, {"matches": matches})
    return matches


def _join(tables: Sequence[pa.Table], ask: Ask) -> pa.Table:
    by_query: dict[str, list[dict[str, object]]] = {}
    for row in pa.concat_tables(tables).to_pylist():
        by_query.setdefault(row["query_id"], []).append(row)
    rows = []
    for several in by_query.values():
        like = [row for row in several if row["doc_id"] is not None]
        like.sort(key=lambda row: (-float(str(row["resemblance"])), str(row["doc_id"]).encode()))
        compared = [row for row in several if row["note"] is None]  # a sketch of another kind may be empty
        rows += like[: ask.top] or (compared or several)[:1]
    return pa.Table.from_pylist(rows, MATCHES.arrow)
