"""`nddup show` of a folder of passages: those that save most, the places of one, the repeated parts of a document."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

from nddup.engines.duck import Database, DuckEngine, as_literal
from nddup.engines.engine import Engine
from nddup.errors import ConfigError, OutputError, UnfinishedRunError
from nddup.ground.json_text import load_object
from nddup.ground.shown import one_line, shorten
from nddup.passages.passages_output import HEADER, Told, summarise
from nddup.report.passages_page import FIRST_PLACES, MOST_CUT, MOST_SAVING, Row, outcome_of, wanted_of
from nddup.results.opening import is_read_here
from nddup.settings.load import read_stored
from nddup.settings.schema import Config
from nddup.storage.local_storage import LocalStorage, local_path
from nddup.tables.features import PASSAGE_TABLES

LARGEST = 10
"""Passages and documents that are listed."""

MOST_PLACES = 20
"""Places that are listed of one passage, or of one document."""

EXCERPT = 50
"""Characters of a passage in a list."""

ONE_PASSAGE = """
    SELECT p.passage_id, p.tokens, p.documents, p.occurrences, p.text, s.saved
    FROM passages AS p JOIN wanted AS w ON p.passage_id = w.id
    LEFT JOIN (SELECT o.passage_id, CAST(sum(o.cut) AS BIGINT) AS saved
               FROM occurrences AS o JOIN wanted AS w ON o.passage_id = w.id GROUP BY o.passage_id) AS s
    ON p.passage_id = s.passage_id
"""
ONE_DOCUMENT = "SELECT r.* FROM repeating AS r JOIN wanted AS w ON r.doc_id = w.id"
OWN_PLACES = """
    SELECT o.passage_id, o.token, o.token_end, o.char, o.char_end, o.first, o.cut, p.documents, p.text
    FROM (SELECT o.*, row_number() OVER (ORDER BY o.token) AS place
          FROM occurrences AS o JOIN wanted AS w ON o.doc_id = w.id) AS o
    JOIN passages AS p ON o.passage_id = p.passage_id
    WHERE o.place <= {most} ORDER BY o.token
"""
FIRST_REJECT = "SELECT source, record, reason, detail FROM rejects ORDER BY source, record LIMIT 1"
OWN_COUNT = "SELECT count(*) AS n FROM occurrences AS o JOIN wanted AS w ON o.doc_id = w.id"


class Opened(NamedTuple):
    """A folder of passages: an engine over its tables, its path, its settings, and what was found."""

    engine: Engine
    path: str
    config: Config
    summary: Told


@contextmanager
def see_tables(path: str, spark: Any) -> Iterator[Engine]:  # noqa: ANN401 - a SparkSession, not loaded without need
    """Open the tables of a folder: on this machine by the embedded engine, or with a session.

    Raises:
        NddupError: if a table cannot be read.
    """
    if spark is not None:
        from nddup.spark.engine import SparkEngine  # noqa: PLC0415

        rows = {name: spark.read.parquet(f"{path}/{name}") for name in PASSAGE_TABLES}
        engine: Engine = SparkEngine.over(spark, **rows)
    else:
        engine = _see_here(path)
    try:
        yield engine
    finally:
        engine.forget()


def _see_here(path: str) -> DuckEngine:
    engine = DuckEngine(path, Database())
    files_of = {name: sorted(Path(local_path(path), name).glob("[!._]*.parquet")) for name in PASSAGE_TABLES}
    for name, files in files_of.items():
        if not files:
            raise UnfinishedRunError(f"{path}: has no table {name}; `nddup passages` did not finish: begin it again")
    engine.shut([str(file) for files in files_of.values() for file in files])
    with engine.reading():
        for name, files in files_of.items():
            listed = ", ".join(as_literal(str(file)) for file in files)
            engine.connection.execute(f"CREATE VIEW {name} AS FROM read_parquet([{listed}])")
    return engine


@contextmanager
def open_passages(path: str, *, master: str | None) -> Iterator[Opened | None]:
    """Open a folder of passages, with Spark if it is elsewhere or a master is given; None if it is a folder of a run.

    Raises:
        OutputError: if its header is damaged.
    """
    spark, files = None, cast("Any", LocalStorage())  # of either engine
    if not is_read_here(path, master=master):
        from nddup.spark.java import is_small  # noqa: PLC0415
        from nddup.spark.session import start_session  # noqa: PLC0415 - neither engine is loaded for the other
        from nddup.spark.session_files import files_at  # noqa: PLC0415

        spark = start_session(master=master, settings={}, is_small=is_small([path]))
        files = files_at(spark, path)
    if not files.exists(f"{path}/{HEADER}"):
        yield None
        return
    try:
        header = load_object(files.read_text(f"{path}/{HEADER}"))
        config = read_stored(header["settings"], origin=f"{path}/{HEADER}")
        summary = Told(**header["found"], first_reject=None, shown=(), shuffled=header["shuffled_bytes"])
    except (ValueError, KeyError, TypeError) as error:
        raise OutputError(f"{path}/{HEADER}: is damaged, or of another version ({error!r})") from error
    with see_tables(path, spark) as engine:
        first = engine.sql(FIRST_REJECT).to_pylist() if summary.rejects else [None]
        yield Opened(engine, path, config, summary._replace(first_reject=first[0]))


def rows_of(opened: Opened, *, passage: str | None, doc: str | None) -> dict[str, Any]:
    """Return the content of `show_passages` as values for JSON.

    Returns:
        Of a passage, its row and its first places; of a document, its row, its first occurrences and their number;
        else the counts, and the passages and documents with most to cut.

    Raises:
        ConfigError: if there is no such passage, or no such document in which something is repeated.
    """
    sql = opened.engine.sql
    if passage is not None:
        wanted = wanted_of([passage])
        rows = sql(ONE_PASSAGE, wanted=wanted).to_pylist()
        if not rows:
            raise ConfigError(f"--passage {passage}: no such passage in {opened.path}; `nddup show` lists the largest")
        places = sql(FIRST_PLACES.format(most=MOST_PLACES), wanted=wanted).to_pylist()
        return {**rows[0], "places": places}
    if doc is not None:
        wanted = wanted_of([doc])
        rows = sql(ONE_DOCUMENT, wanted=wanted).to_pylist()
        if not rows:
            raise ConfigError(f"--doc {doc}: nothing of such a document is repeated in {opened.path}")
        places = sql(OWN_PLACES.format(most=MOST_PLACES), wanted=wanted).to_pylist()
        count = sql(OWN_COUNT, wanted=wanted).to_pylist()[0]["n"]
        return {**rows[0], "occurrences": count, "places": places}
    return {
        "path": opened.path,
        **opened.summary.counts(),
        "largest": sql(MOST_SAVING.format(most=LARGEST)).to_pylist(),
        "most_cut": sql(MOST_CUT.format(most=LARGEST)).to_pylist(),
    }


def show_passages(opened: Opened, *, passage: str | None, doc: str | None) -> str:
    """Describe a folder of passages: the summary and what saves most; or one passage, or one document.

    Raises:
        ConfigError: as `rows_of`.
    """
    facts = rows_of(opened, passage=passage, doc=doc)
    if passage is not None:
        return _say_passage(facts)
    if doc is not None:
        return _say_document(facts)
    lines = list(summarise(opened.summary, opened.config))
    if facts["largest"]:
        lines += ["passages by tokens saved", f"  {'passage':<32}  {'saved':>9}  {'tokens':>6}  {'times':>7}  text"]
    lines += [
        f"  {row['passage_id']}  {row['saved']:>9,}  {row['tokens']:>6,}  {row['occurrences']:>7,}"
        f"  {_excerpt(row['text'])}"
        for row in facts["largest"]
    ]
    if facts["most_cut"]:
        lines += ["documents with most to cut", f"  {'cut':>9}  {'repeated':>9}  {'tokens':>9}  document"]
    lines += [
        f"  {row['cut']:>9,}  {row['repeated']:>9,}  {row['tokens']:>9,}  {one_line(row['doc_id'])}"
        for row in facts["most_cut"]
    ]
    return "\n".join([*lines, f"one passage: nddup show {opened.path} --passage ID; one document: --doc ID", ""])


def _say_passage(row: Row) -> str:
    places = f"{row['occurrences']:,} times in {row['documents']:,} documents"
    lines = [
        f"passage {row['passage_id']}: {row['tokens']:,} tokens, {places}; {row['saved']:,} tokens can be cut",
        f"  {_in_a_line(row['text'])}",
        f"  {'characters':>21}  document",
    ]
    lines += [f"  {_span(place)}  {one_line(place['doc_id'])}: {outcome_of(place)}" for place in row["places"]]
    return "\n".join([*lines, *_more(row), ""])


def _say_document(row: Row) -> str:
    dropped = "; it is dropped, too little is left" if row["dropped"] else ""
    lines = [
        one_line(f"document {row['doc_id']}: {row['source']}#{row['record']}"),
        f"  of {row['tokens']:,} tokens {row['repeated']:,} are repeated, {row['cut']:,} can be cut{dropped}",
        f"  {'characters':>21}  {'passage':<32}  in documents",
    ]
    lines += [
        f"  {_span(place)}  {place['passage_id']}  {place['documents']:>12,}  {outcome_of(place)}:"
        f" {_excerpt(place['text'])}"
        for place in row["places"]
    ]
    return "\n".join([*lines, *_more(row), ""])


def _span(place: Row) -> str:
    return f"{place['char']:,} to {place['char_end']:,}".rjust(21)


def _more(row: Row) -> Sequence[str]:
    more = row["occurrences"] - len(row["places"])
    return [f"  … and {more:,} more; the table `occurrences` lists all"] if more > 0 else []


def _in_a_line(text: str) -> str:
    return one_line(" ".join(text.split()))


def _excerpt(text: str) -> str:
    return shorten(_in_a_line(text), EXCERPT)
