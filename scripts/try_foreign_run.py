"""Change single values in the notes and files of a run's folder, and see what the commands on it make of them.

    python -m scripts.try_foreign_run [--changes N] [--seconds N] [--seed N] [--only FILE]

The digests of the changed files are made right again. Child processes show, check, report and evaluate the run, and
resume it. None may end by a signal, without an end, or with a raw error; none may open, write or remove what lies in a
folder that only the changed values name.
"""

import argparse
import io
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from nddup.cli import main as run_command
from nddup.ground.array_files import crc_of
from nddup.storage.run_folder import digest
from scripts.try_foreign_repository import change_file, in_child, texts

SECONDS = 300
"""Patience with all commands on one folder."""

MARKUP = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"


class Outcome(NamedTuple):
    """A change, and what came of it: empty if nothing is wrong."""

    file: str
    change: str
    wrong: str


def make_run(place: Path) -> None:
    """Make a run over two files, with a report, truth-like pairs and kept files."""
    (place / "in").mkdir(parents=True)
    rows = [
        {"id": name, "url": f"http://x.org/{name}", "text": text, "lang": name[-1]} for name, text in texts().items()
    ]
    lines = [json.dumps(row) for row in rows]
    (place / "in" / "a.jsonl").write_text("\n".join(lines[:20]) + "\n")
    (place / "in" / "b.jsonl").write_text("\n".join(lines[20:]) + "\n")
    (place / "truth.csv").write_text("doc_a,doc_b\nd00,d01\n")
    (place / "secret").mkdir()
    (place / "secret" / "documents").mkdir()
    (place / "secret" / "file.json").write_text("{}")
    stored = ["--set", "keep.ledger=[lang]", "--set", "output.onto=true", "--set", "local.processes=1"]
    assert run_command(["run", f"{place}/in", "--output", f"{place}/run", *stored]) == 0  # noqa: S101


WHOLE, CHECKED = 8, 3
"""One change of so many is tried with the commands that write, too; one of so many with `check`, the dearest of all."""


def commands_on(place: Path, number: int) -> list[list[str]]:
    """Return the commands that read the run, and for some numbers of changes those that write or go on with it."""
    run, alone = f"{place}/run", ("--set", "local.processes=1")
    asked = [["show", run], ["show", run, "--doc", "d00"]]
    if number % CHECKED == CHECKED - 1:
        asked.append(["check", run])
    return asked if number % WHOLE != WHOLE - 1 else [
        *asked, ["report", run],
        ["evaluate", run, "--truth", f"{place}/truth.csv"],
        ["run", f"{place}/in/a.jsonl", "--onto", run, "--as", "z", "--output", f"{place}/next", *alone],
        ["split", run, "--parts", "train=.8,test=.2", "--output", f"{place}/split"],
        ["diff", run, f"{place}/run", "--output", f"{place}/diff"],
        ["run", f"{place}/in", "--output", run, "--resume", *alone],
    ]  # fmt: skip


def watch(place: Path) -> list[str]:
    """Note from now on what this process does to files in the secret folder."""
    touched = list[str]()
    secret = os.fsencode(place / "secret")

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if event.split(".", maxsplit=1)[0] in {"open", "os", "shutil"}:
            for value in arguments:
                if isinstance(value, str | bytes) and secret in os.fsencode(
                    os.path.abspath(os.fsdecode(value))  # noqa: PTH100 - links are not followed
                ):
                    touched.append(f"{event} {value!r}")

    sys.addaudithook(note)
    return touched


def judge(place: Path, number: int) -> str:
    """Return what is wrong with what the commands do; empty if nothing is."""
    signal.alarm(SECONDS)
    touched, wrong = watch(place), list[str]()
    for command in commands_on(place, number):
        out, err = io.StringIO(), io.StringIO()
        try:
            with redirect_stdout(out), redirect_stderr(err):
                run_command(command)
        except SystemExit:
            pass
        except BaseException as error:  # noqa: BLE001 - what a command would show raw
            wrong.append(f"{command[0]}: raw {type(error).__name__}: {error}"[:300])
        if "NDDUP_DEBUG=1" in err.getvalue():  # an error that is not understood
            wrong.append(f"{command[0]}: {err.getvalue()[-300:]}")
        if "\x1b[2J" in out.getvalue() + err.getvalue():
            wrong.append(f"{command[0]}: acts on the terminal")
    for page in (place / "run" / "report").rglob("*"):
        if page.is_file() and page.suffix in (".html", ".js", ".json") and MARKUP.encode() in page.read_bytes():
            wrong.append(f"{page.name}: holds markup of others")
    return "; ".join(dict.fromkeys([*wrong, *touched])) or "-"


def paths_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401
    """Yield the way to each value within a JSON value."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from paths_in(inner, (*path, key))


def hostile_values(place: Path, before: Any) -> list[Any]:  # noqa: ANN401
    """Return what a value may be replaced by."""
    secret = f"{place}/secret"
    nested: Any = []
    for _ in range(400):
        nested = [nested]
    return [
        None, True, -1, 0, 1 << 70, 1e308, float("nan"), "", "x", [], {}, [None], {"a": 1}, [before], {"x": before},
        secret, f"{secret}/file.json", "../secret", "../secret/documents", f"file:{secret}", "\x1b[2J\n", MARKUP,
        "documents", "\ud800", "0" * 5000, nested, "(SELECT 1)", f"'{secret}/file.json'", "javascript:alert(1)",
    ]  # fmt: skip


def change_json(place: Path, file: Path, chance: random.Random) -> str:
    """Replace a value of a JSON file, or rename a key; the digest is made right."""
    value = json.loads(file.read_text())
    had_digest = value.pop("digest", None) is not None
    way = chance.choice([*paths_in(value)])
    if not way:
        value = chance.choice(hostile_values(place, value))
    else:
        holder = value
        for key in way[:-1]:
            holder = holder[key]
        if isinstance(holder, dict) and chance.random() < 0.2:  # noqa: PLR2004
            holder[chance.choice([f"{place}/secret", "../secret", "x", ""])] = holder.pop(way[-1])
        else:
            holder[way[-1]] = chance.choice(hostile_values(place, holder[way[-1]]))
    text = json.dumps(value)
    if had_digest and isinstance(value, dict):
        text = json.dumps({**value, "digest": digest(json.loads(text))})
    file.unlink()
    file.write_text(text)
    return f"{way}: {text[:0]}{_shown(value, way)}"


def _shown(value: Any, way: tuple[Any, ...]) -> str:  # noqa: ANN401
    for key in way:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return "renamed"
    return repr(value)[:80]


def replace_file(place: Path, file: Path, chance: random.Random) -> str:
    """Put a link, a pipe or a folder in the place of a file or a folder."""
    how = chance.choice(["link to a file", "link to a folder", "pipe", "folder", "moved away"])
    if file.is_dir():
        shutil.rmtree(file)
    else:
        file.unlink()
    if how == "pipe":
        os.mkfifo(file)
    elif how == "folder":
        file.mkdir()
    elif how.startswith("link"):
        file.symlink_to(place / "secret" / ("file.json" if "file" in how else "documents"))
    return how


def renew_digests(run: Path) -> None:
    """Write the CRC-32 and sizes that files have now into the notes, and the digests of these."""
    for note in sorted((run / "_stages").glob("*.json")):
        place = run / note.stem if (run / note.stem).is_dir() else run / "_stages" / note.stem
        with_values(note, partial(_renew_note, folder=place))
    if (run / "_COMPLETE").is_file() and not (run / "_COMPLETE").is_symlink():
        with_values(run / "_COMPLETE", partial(_renew_marker, run=run))


def _renew_note(value: dict[str, Any], folder: Path) -> None:
    if folder.is_dir() and not folder.is_symlink() and isinstance(value.get("crc32"), dict):
        files = [file for file in sorted(folder.rglob("*")) if file.is_file() and file.name[0] not in "._"]
        value["crc32"] = {str(file.relative_to(folder)): crc_of(file) for file in files}
        value["files"] = {file.name: file.stat().st_size for file in files}


def _renew_marker(value: dict[str, Any], run: Path) -> None:
    if isinstance(value.get("crc32"), dict) and isinstance(value.get("texts"), dict):
        for name in value["crc32"]:
            if (run / str(name)).is_file() and not (run / str(name)).is_symlink():
                value["crc32"][name] = {str(name): crc_of(run / str(name))}
        for name in value["texts"]:
            if (run / str(name)).is_file():
                value["texts"][name] = (run / str(name)).stat().st_size


def with_values(file: Path, change: Any) -> None:  # noqa: ANN401
    """Change a JSON object in a file, and its digest."""
    if file.is_symlink() or not file.is_file():
        return
    try:
        value = json.loads(file.read_text())
        had = value.pop("digest", None)
        change(value)
        text = json.dumps({**value, "digest": digest(json.loads(json.dumps(value)))} if had else value)
    except (ValueError, AttributeError, TypeError, RecursionError, OSError):
        return
    file.unlink()
    file.write_text(text)


def try_changes(place: Path, changes: int, *, seed: int = 1, only: str = "") -> Iterator[Outcome]:
    """Change each file of a run so many times, one change at a time, the files in turn, in an order that is drawn."""
    whole = place / "whole"
    make_run(whole)
    files = sorted(
        path.relative_to(whole / "run") for path in (whole / "run").rglob("*")
        if not {"report", "kept"} & set(path.relative_to(whole / "run").parts)
    )  # fmt: skip
    chance, tried = random.Random(seed), 0  # noqa: S311
    for _ in range(changes):
        chosen = [one for one in files if re.search(only, str(one))]
        for name in chance.sample(chosen, len(chosen)):
            tried += 1
            folder = place / "foreign"
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(whole, folder)
            text = (folder / "run" / "_RUN.json").read_text().replace(str(whole), str(folder))
            (folder / "run" / "_RUN.json").write_text(text)
            file = folder / "run" / name
            try:
                if file.is_dir() or chance.random() < 0.15:  # noqa: PLR2004
                    said = replace_file(folder, file, chance)
                elif file.suffix == ".parquet":
                    said = change_file(file, chance)
                else:
                    said = change_json(folder, file, chance)
            except ValueError:  # no JSON
                said = replace_file(folder, file, chance)
            renew_digests(folder / "run")
            wrong = in_child(partial(judge, folder, tried))
            yield Outcome(str(name), said, "" if wrong == "-" else wrong)


def main() -> None:
    """Print each change of which something wrong came; exit with 1 if there is one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--changes", type=int, default=10, metavar="N", help="of each file")
    parser.add_argument("--seconds", type=float, default=float("inf"), metavar="N", help="at most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="only files that this pattern finds")
    options = parser.parse_args()
    end, counts, wrong = time.monotonic() + options.seconds, Counter[str](), 0
    with tempfile.TemporaryDirectory(prefix="nddup-foreign-") as place:
        for outcome in try_changes(Path(place), options.changes, seed=options.seed, only=options.only):
            counts[re.sub(r"part-.*", "part", outcome.file)] += 1
            if outcome.wrong:
                wrong += 1
                sys.stdout.write(f"{outcome.file}: {outcome.change}: {outcome.wrong}\n")
                sys.stdout.flush()
            if time.monotonic() > end:
                break
    for name, count in counts.items():
        sys.stdout.write(f"{name:<40} {count}\n")
    sys.stdout.write(f"{counts.total()} changes, {wrong} of which something wrong came\n")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
