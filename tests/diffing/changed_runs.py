"""Random histories of a collection, and what a diff of two runs over them must be, by its definition."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq

from nddup.embedded.run import run_locally
from nddup.settings.load import build_config
from nddup.stages.diff_runs import ROWS, list_later
from tests.finished_runs import write_rows

POLICIES: tuple[Any, ...] = ("longest", "first", "first-id", ["-score:number"])

CHANGES = ("come", "go", "text", "values", "order", "threshold", "policy", "same", "forced")


APPLIED = {
    "documents": """
        SELECT {row} FROM earlier_documents AS d ANTI JOIN (
            SELECT doc_id FROM changes WHERE change = 'gone' UNION SELECT doc_id FROM ({later}) AS l
        ) AS c ON d.doc_id = c.doc_id
        UNION ALL {later}
    """,
    "keep": """
        SELECT {row} FROM before_keep AS d ANTI JOIN (
            SELECT doc_id FROM changes WHERE change = 'gone' UNION SELECT doc_id FROM ({later}) AS l
        ) AS c ON d.doc_id = c.doc_id
        UNION ALL {later}
    """,
    "families": """
        SELECT d.name, d.doc_id, d.documents FROM earlier_families AS d ANTI JOIN family_changes AS c ON d.name = c.name
        UNION ALL SELECT c.name, c.doc_id, c.after AS documents FROM family_changes AS c WHERE c.after > 0
    """,
}
"""What the tables of the earlier run become when a diff is applied to them."""


class State(NamedTuple):
    """A collection: files with their records, and the settings of its run."""

    files: Mapping[str, list[dict[str, Any]]]
    threshold: float
    policy: Any
    forced: Mapping[str, str]
    same: tuple[str, ...] = ()
    """The columns of keep.same."""

    @property
    def columns(self) -> set[str]:
        """The columns whose values are stored."""
        return {*self.same, *(["score"] if isinstance(self.policy, list) else [])}


def draw_state(drawn: np.random.Generator, n: int) -> State:
    """Draw n documents in three files, most of them in families of a few."""
    texts = [draw_text(drawn) for _ in range(max(1, n // 4))]
    rows = [
        {"id": f"d{at:03}", "text": vary(drawn, texts[drawn.integers(len(texts))]), "score": int(drawn.integers(5))}
        for at in range(n)
    ]
    files: dict[str, list[dict[str, Any]]] = {"a": [], "b": [], "c": []}
    for row in rows:
        files["abc"[drawn.integers(3)]].append(row)
    same = ("score",) if drawn.random() < 0.3 else ()
    return State(files, 0.7, POLICIES[drawn.integers(len(POLICIES))], {}, same)


def draw_text(drawn: np.random.Generator) -> str:
    """Draw thirty words."""
    return " ".join(f"w{number}" for number in drawn.integers(10**6, size=30))


def vary(drawn: np.random.Generator, text: str) -> str:
    """Change a word or two near the end of a text, or none."""
    words = text.split()
    for _ in range(drawn.integers(3)):
        words[-1 - drawn.integers(4)] = f"v{drawn.integers(4)}"
    return " ".join(words)


def change(drawn: np.random.Generator, state: State, kinds: Iterable[str]) -> State:
    """Return the collection later, after changes of these kinds."""
    files = {name: [dict(row) for row in rows] for name, rows in state.files.items()}
    rows = [row for some in files.values() for row in some]
    texts = [row["text"] for row in rows]

    chosen = [row for row in rows if drawn.random() < 0.12]
    later = state
    for kind in kinds:
        if kind == "come":
            for number in range(drawn.integers(1, 5)):
                row = {"id": f"e{number}", "text": vary(drawn, str(drawn.choice(texts))), "score": 2}
                files["abc"[drawn.integers(3)]].insert(0, row)
        elif kind == "order":
            files = dict(zip(drawn.permutation(list(files)).tolist(), files.values(), strict=True))
        elif kind == "go":
            files = {name: [row for row in part if drawn.random() > 0.1] for name, part in files.items()}
        elif kind in ("text", "values"):
            for row in chosen:
                made = {"text": vary(drawn, str(drawn.choice([*texts, draw_text(drawn)])))}
                row.update(made if kind == "text" else {"score": int(drawn.integers(5))})
        else:
            later = set_otherwise(drawn, later, kind, chosen)
    return later._replace(files=files)


def set_otherwise(drawn: np.random.Generator, state: State, kind: str, chosen: Iterable[Mapping[str, Any]]) -> State:
    """Return the same collection with another threshold, policy or list of keep.force."""
    if kind == "threshold":
        return state._replace(threshold=float(drawn.choice([0.5, 0.8])))
    if kind == "same":
        return state._replace(same=() if state.same else ("score",))
    if kind == "policy":
        return state._replace(policy=POLICIES[drawn.integers(len(POLICIES))])
    return state._replace(forced={row["id"]: str(drawn.choice(["kept", "removed"])) for row in chosen})


def run_state(state: State, folder: Path, name: str) -> str:
    """Run over a collection, and return the folder of the run."""
    place, output = folder / f"{name}-in", folder / name
    place.mkdir()
    for file, rows in state.files.items():
        write_rows(place / f"{file}.jsonl", rows)
    keep: dict[str, Any] = {"policy": state.policy}
    if state.same:
        keep["same"] = list(state.same)
    if state.forced:
        listed = folder / f"{name}-forced.csv"
        listed.write_text("".join(f"{one},{how}\n" for one, how in state.forced.items()), encoding="utf-8")
        keep["force"] = str(listed)
    settings = {"output": {"report": False}, "local": {"processes": 1}, "keep": keep,
                "pairs": {"threshold": state.threshold}}  # fmt: skip
    run_locally([str(place)], str(output), build_config(settings, origin="test"), log_format="json")
    return str(output)


def table(run: str, name: str) -> list[dict[str, Any]]:
    """Return the rows of a table of a run."""
    rows: list[dict[str, Any]] = pq.read_table(f"{run}/{name}").to_pylist()
    return rows


def components(run: str) -> dict[str, frozenset[str]]:
    """Return the documents that pairs and equal texts connect with each, one edge merged at a time."""
    documents = table(run, "documents")
    whole = {row["doc_id"]: frozenset([row["doc_id"]]) for row in documents}
    edges = [(row["doc_a"], row["doc_b"]) for row in table(run, "pairs")]
    for a, b in [*edges, *((row["doc_id"], row["group"]) for row in documents)]:
        merged = whole[a] | whole[b]
        whole |= dict.fromkeys(merged, merged)
    return whole


CAUSES = ("text", "values", "settings", "neighbours", "order")
"""The causes of a verdict, in their order."""


def causes_plainly(before: str, after: str, earlier: State, later: State) -> dict[str, list[str]]:
    """Return all causes that hold for each changed verdict, by their definition, the first one first."""
    documents = [{row["doc_id"]: row for row in table(run, "documents")} for run in (before, after)]
    both = documents[0].keys() & documents[1].keys()
    same_columns = earlier.columns == later.columns

    def differs(one: str, *names: str) -> bool:
        return any(documents[0][one][name] != documents[1][one][name] for name in names)

    text = {one for one in both if differs(one, "content_fingerprint")}
    values = {one for one in both if differs(one, "url", "date", *(["policy"] if same_columns else []))}
    values |= {one for one in both if earlier.forced.get(one) != later.forced.get(one)}
    touched = text | values | (documents[0].keys() ^ documents[1].keys())
    parts = [components(run) for run in (before, after)]
    same_settings = earlier._replace(files={}, forced={}) == later._replace(files={}, forced={})
    found = dict[str, list[str]]()
    for one in changed_verdicts(before, after):
        around = parts[0][one] | parts[1][one]
        orders = [sorted(around & both, key=lambda d, of=of: of[d]["doc_key"]) for of in documents]  # type: ignore[misc]
        is_near = bool((around - {one}) & touched)
        holds = (one in text, one in values, not same_settings, is_near, orders[0] != orders[1])
        found[one] = [cause for cause, is_so in zip(CAUSES, holds, strict=True) if is_so]
    return found


def changed_verdicts(before: str, after: str) -> set[str]:
    """Return the documents of both runs whose verdicts differ."""
    rows = [
        {row["doc_id"]: (row["kept"], row["duplicate_of"]) for row in table(run, "keep")} for run in (before, after)
    ]
    return {one for one in rows[0].keys() & rows[1].keys() if rows[0][one] != rows[1][one]}


def with_only(cause: str, earlier: State, later: State) -> State:
    """Return the earlier collection with one cause of the later one's verdicts: all that differs in it, and no more."""
    if cause == "settings":
        return later._replace(files=earlier.files, forced=earlier.forced)
    own, others = records(earlier), records(later)
    if cause == "order":
        files = {name: [own[row["id"]] for row in some if row["id"] in own] for name, some in later.files.items()}
        files["c"] += [row for one, row in own.items() if one not in others]
        return earlier._replace(files=files)
    column = "text" if cause == "text" else "score"
    files = {
        name: [row | {column: others.get(row["id"], row)[column]} for row in some]
        for name, some in earlier.files.items()
    }
    return earlier._replace(files=files, forced=later.forced if cause == "values" else earlier.forced)


def records(state: State) -> dict[str, dict[str, Any]]:
    """Return the records of a collection by id."""
    return {row["id"]: row for some in state.files.values() for row in some}


def unlike(one: State, other: State) -> set[str]:
    """Return the documents that only one of two collections has, or has with another text, value or verdict forced."""
    columns = ("text", *(["score"] if other.columns else []))
    seen = [
        {(doc_id, *(row[name] for name in columns), state.forced.get(doc_id)) for doc_id, row in records(state).items()}
        for state in (one, other)
    ]
    return {doc_id for doc_id, *_ in seen[0] ^ seen[1]}


def apply_diff(name: str) -> str:
    """Return the query for a table of the later run, made of the earlier run's and the diff.

    An engine answers it after `diff_runs`; for `documents` it must see `earlier_documents`, with all their columns, for
    `families` `earlier_families`, as the answer has them.

    Args:
        name: `documents`, without `doc_key`; `keep`; or `families`: name, kept document, number of documents.
    """
    if name not in ROWS:
        return APPLIED[name]
    return APPLIED[name].format(row=", ".join(f"d.{column}" for column in ROWS[name]), later=list_later(name))
