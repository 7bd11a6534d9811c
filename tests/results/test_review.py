"""`nddup show --review`: groups, threads and batches of all documents."""

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nddup.embedded.run import run_locally
from nddup.results.opening import open_here
from nddup.results.review import Message, arrange, cut_batches, find_threads, review_lines, show_review
from nddup.settings.load import load_config

BODY = " ".join(f"word{number}" for number in range(50))
MAIL = [
    ("Plan", BODY, ""),
    ("Re: Plan", f"{BODY} agreed", "In-Reply-To: <m0@x>\n"),
    ("Re: Plan", f"{BODY} agreed too", "References: <m0@x>\n <m1@x>\n"),
    ("AW: plan", f"{BODY} also", ""),
    ("Lunch", " ".join(f"food{number}" for number in range(40)), ""),
    ("Re: lost", " ".join(f"gone{number}" for number in range(40)), "In-Reply-To: <never@x>\n"),
    ("Re: lost", " ".join(f"gone{number}" for number in range(40)) + " again", "References: <never@x>\n"),
]


def write_mail(folder: Path) -> str:
    """Write the messages, a file each."""
    folder.mkdir()
    for number, (subject, body, fields) in enumerate(MAIL):
        head = f"From: a@x\nMessage-ID: <m{number}@x>\nSubject: {subject}\n{fields}"
        (folder / f"{number}.eml").write_text(f"{head}\n{body}\n")
    return str(folder)


@pytest.mark.parametrize("ledger", [None, ["In-Reply-To", "References", "Subject"]])
def test_messages_are_in_groups_threads_and_batches(tmp_path: Path, ledger: list[str] | None) -> None:
    """Threads are the same whether the run stored the fields of the header or they are read again."""
    settings = [] if ledger is None else [f"keep.ledger=[{', '.join(ledger)}]"]
    run_locally([write_mail(tmp_path / "mail")], str(tmp_path / "run"), load_config(assignments=settings))

    found = arrange(open_here(str(tmp_path / "run")), 3, master=None)
    rows = {row["doc_id"]: row for row in csv.DictReader(io.StringIO("".join(review_lines(found))))}

    assert {name: row["thread"] for name, row in rows.items()} == {
        "m0@x": "m0@x", "m1@x": "m0@x", "m2@x": "m0@x", "m3@x": "m0@x", "m4@x": "m4@x", "m5@x": "m5@x", "m6@x": "m5@x",
    }  # fmt: skip
    assert [row["pivot"] for row in rows.values() if row["group"] == "m2@x"] == ["true", "false", "false", "false"]
    assert {row["group_size"] for row in rows.values() if row["group"] == "m2@x"} == {"4"}
    assert [row["batch"] for row in rows.values()] == ["1", "1", "1", "2", "2", "3", "3"]
    assert "2  threads of more than one message" in show_review("run", found, 3)


def test_without_mail_there_are_no_threads(tmp_path: Path) -> None:
    """Documents are grouped all the same, and no input is read again."""
    (tmp_path / "a.txt").write_text(BODY)
    (tmp_path / "b.txt").write_text(f"{BODY} more")
    run_locally([str(tmp_path / "a.txt"), str(tmp_path / "b.txt")], str(tmp_path / "run"), load_config())

    found = arrange(open_here(str(tmp_path / "run")), None, master=None)
    rows = list(csv.DictReader(io.StringIO("".join(review_lines(found)))))

    assert [(row["pivot"], row["thread"], row["batch"]) for row in rows] == [("true", "", ""), ("false", "", "")]


def test_a_message_inside_another_is_in_its_thread() -> None:
    """So is a reply to a message that nobody has, with the other replies to it."""
    messages = [
        Message("a/1", "a", None, None, "Inner"),
        Message("a", None, "<gone>", None, "Re: Outer"),
        Message("b", None, None, "<gone>", None),
        Message("c", None, None, None, "Re: Nothing of this subject"),
    ]

    assert find_threads(messages) == ["a", "a", "a", "c"]
    assert find_threads([Message("a", None, "<b>", None, None), Message("b", None, "<a>", None, None)]) == ["a", "a"]


@given(st.lists(st.integers(1, 9), max_size=30), st.integers(1, 6))
def test_batches_divide_only_families_that_do_not_fit(sizes: list[int], most: int) -> None:
    """No batch is larger than asked; a family in two batches is larger than one."""
    groups = [group for group, size in enumerate(sizes) for _ in range(size)]
    batches = cut_batches(groups, most)

    assert all(batches.count(batch) <= most for batch in batches)
    of_group = {group: {batch for at, batch in zip(groups, batches, strict=True) if at == group} for group in groups}
    assert all(len(found) == 1 for group, found in of_group.items() if sizes[group] <= most)
    assert batches == sorted(batches)
    assert len(batches) == len(groups)
