"""All documents of a run for people who review them: grouped, in threads and in batches.

    documents, keep       --DOCUMENTS-->      a row for each document, with its family and its likeness to the kept one
    headers of messages   --find_threads-->   the thread of each message
    families              --cut_batches-->    batches that divide no family, as far as one fits

A family is a kept document, called the pivot, and those removed for it. Messages are in one thread if one names the
other in `In-Reply-To` or `References`, or both name the same third one; a reply that names none is in the thread whose
first message has its subject. A thread is called by its first message without a parent in it.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nddup.ground.shown import counted, csv_line, drop_login, one_line
from nddup.results.opening import Opened, see_columns

COLUMNS = (
    "doc_id", "batch", "group", "group_size", "pivot", "similarity", "lost", "thread", "thread_size", "parent",
    "attachments", "tokens", "source", "record", "url",
)  # fmt: skip
"""The columns of the CSV. `group` is the id of the pivot; `attachments` counts the parts that are not read."""

HEADERS = ("In-Reply-To", "References", "Subject")
"""The fields of a message's header that make threads."""

DOCUMENTS = """
    SELECT d.doc_id, coalesce(k.duplicate_of, d.doc_id) AS family, k.kept, k.resemblance, k.lost, d.parent,
           d.unread_parts, d.n_tokens, d.source, d.record, d.url, {headers}
    FROM documents AS d JOIN keep AS k ON d.doc_id = k.doc_id ORDER BY d.doc_key
"""

REPLY = re.compile(r"^(?:\s*(?:re|aw|sv|antw|fwd?|wg|tr|rif|ынт|на|отв)(?:\[\d+\])?\s*:)+\s*", re.IGNORECASE)
"""What stands before the subject of a reply, or of a forwarded message."""

_ID = re.compile(r"<([^<>\s]+)>")


class Message(NamedTuple):
    """What of a message makes its thread."""

    doc_id: str
    parent: str | None
    replies_to: str | None
    references: str | None
    subject: str | None


def find_threads(messages: Sequence[Message]) -> list[str]:
    """Return the thread of each message, in their order.

    Cost: about linear. Memory: all ids that the messages name.

    Example:
        >>> first = Message("a@x", None, None, None, "Plan")
        >>> reply = Message("b@x", None, "<a@x>", "<a@x>", "Re: Plan")
        >>> find_threads([first, reply, Message("c@x", None, None, None, "AW: plan"), Message("d@x", *[None] * 4)])
        ['a@x', 'a@x', 'a@x', 'd@x']
    """
    by_subject: dict[str, str] = {}
    for one in messages:
        if one.subject and not REPLY.match(one.subject):
            by_subject.setdefault(one.subject.strip().casefold(), one.doc_id)
    parents = [_parents(one, by_subject) for one in messages]
    joined = _Joined()
    for one, named in zip(messages, parents, strict=True):
        for name in named:
            joined.join(one.doc_id, name)

    known = {one.doc_id for one in messages}
    names: dict[str, str] = {}
    for is_any in (False, True):  # if every message of a thread has a parent in it, its first
        for one, named in zip(messages, parents, strict=True):
            if is_any or known.isdisjoint(named):
                names.setdefault(joined.root(one.doc_id), one.doc_id)
    return [names[joined.root(one.doc_id)] for one in messages]


class _Joined:
    """Sets of names that were joined."""

    def __init__(self) -> None:
        self._above: dict[str, str] = {}

    def root(self, name: str) -> str:
        """Return the name that stands for a set."""
        above = self._above
        while above.setdefault(name, name) != name:
            above[name] = above[above[name]]
            name = above[name]
        return name

    def join(self, one: str, other: str) -> None:
        self._above[self.root(one)] = self.root(other)


def _parents(one: Message, by_subject: Mapping[str, str]) -> list[str]:
    """Return the messages that one replies to, by id, or else by its subject; and the one that holds it."""
    named = _ID.findall(f"{one.replies_to or ''} {one.references or ''}")
    begun = REPLY.match(one.subject or "")
    if begun and not named and (first := by_subject.get((one.subject or "")[begun.end() :].strip().casefold())):
        named.append(first)
    return [*named, *([one.parent] if one.parent else [])]


def cut_batches(groups: Sequence[int], most: int) -> list[int]:
    """Return the batch of each member, from 1, for groups in order, the members of one beside each other.

    Args:
        groups: the number of the group of each member.
        most: members of a batch. A group that is larger has batches of its own.

    Example:
        >>> cut_batches([0, 0, 1, 1, 2, 3, 3, 3, 3], 3)
        [1, 1, 2, 2, 2, 3, 3, 3, 4]
    """
    batches: list[int] = []
    sizes = np.bincount(groups).tolist() if len(groups) else []
    batch, filled = 1, 0
    for at, group in enumerate(groups):
        is_first = at == 0 or groups[at - 1] != group
        if filled and (filled == most or (is_first and filled + sizes[group] > most)):
            batch, filled = batch + 1, 0
        batches.append(batch)
        filled += 1
    return batches


class Reviewed(NamedTuple):
    """The documents in the order of the review: families of a thread beside each other, each led by its pivot."""

    rows: pa.Table
    families: NDArray[np.int64]
    threads: list[str | None]
    batches: list[int] | None


def arrange(opened: Opened, most: int | None, *, master: str | None) -> Reviewed:
    """Return the documents in order.

    Args:
        most: documents of a batch; None for no batches.

    Raises:
        NddupError: if headers must be read again, and inputs changed.

    Cost: sorts all documents in memory; where e-mail was read and the run did not store the fields of `HEADERS`, one
    pass over the inputs.
    """
    values, joined = see_columns(opened, HEADERS, "mail", master=master)
    headers = ", ".join(
        f"{value} AS h{at}" for at, value in enumerate(values or ["CAST(NULL AS STRING)"] * len(HEADERS))
    )
    text = DOCUMENTS.format(headers=headers)
    rows = opened.run.sql(text.replace(" ORDER BY", f"{joined} ORDER BY"))
    threads: list[str | None] = [None] * len(rows)
    if values:
        columns = [rows[name].to_pylist() for name in ("doc_id", "parent", "h0", "h1", "h2")]
        threads = list(find_threads([Message(*one) for one in zip(*columns, strict=True)]))
    leaders = threads if values else rows["family"].to_pylist()
    place = {name: at for at, name in reversed(list(enumerate(rows["doc_id"].to_pylist())))}
    families = np.array([place[name] for name in rows["family"].to_pylist()], np.int64)
    begun = np.array([place[name or ""] for name in leaders], np.int64)[families]  # a family lies in its pivot's thread
    order = np.lexsort((np.arange(len(rows)), ~np.asarray(rows["kept"]), families, begun))
    families = families[order]
    groups = np.cumsum(np.r_[False, families[1:] != families[:-1]]) if len(rows) else families
    batches = None if most is None else cut_batches(groups.tolist(), most)
    return Reviewed(rows.take(pa.array(order)), families, [threads[at] for at in order], batches)


def review_lines(review: Reviewed) -> Iterator[str]:
    """Yield all documents as lines of a CSV file, the header first."""
    sizes, threads = np.bincount(review.families), Counter(one for one in review.threads if one is not None)
    yield csv_line(COLUMNS)
    for at, row in enumerate(review.rows.to_pylist()):
        thread = review.threads[at]
        yield csv_line([
            row["doc_id"], None if review.batches is None else review.batches[at], row["family"],
            int(sizes[review.families[at]]), row["family"] == row["doc_id"], row["resemblance"], row["lost"], thread,
            None if thread is None else threads[thread], row["parent"], row["unread_parts"], row["n_tokens"],
            row["source"], row["record"], row["url"],
        ])  # fmt: skip


def show_review(path: str, review: Reviewed, most: int | None) -> str:
    """Return the counts of what `review_lines` lists."""
    sizes, threads = np.bincount(review.families), Counter(one for one in review.threads if one is not None)
    families, many = int((sizes > 1).sum()), int(sizes[sizes > 1].sum())
    lines = [
        counted(len(review.rows), "document"),
        f"  {families:>9,}  families of more than one document, with {many:,} documents together",
    ]
    if threads:
        lines.append(f"  {sum(size > 1 for size in threads.values()):>9,}  threads of more than one message")
    if review.batches:
        lines.append(f"  {review.batches[-1]:>9,}  batches of at most {most:,} documents")
    batch = "" if most is None else f" --batch {most}"
    lines.append(f"each document: nddup show {one_line(drop_login(path))} --review{batch} --csv")
    return "\n".join([*lines, ""])
