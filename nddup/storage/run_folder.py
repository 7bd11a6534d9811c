"""Where the tables of a job are stored: a folder for each run, `RunFolder`, with a note on each table.

    documents/ rejects/ pairs/ clusters/ members/ keep/     the tables, Parquet
    duplicates.txt  metrics.json  kept/  tagged/ …          what is written from them: `OUTPUTS`; past 1 GB a folder
    _stages/NAME.json  _stages/NAME/                        the note on a table; a working table
    _RUN.json                                               this is a run: versions, settings, inputs, no secrets
    _CLAIM-*                                                a run works here (`nddup.storage.claim`)
    _COMPLETE                                               what is there, written last; without it nothing is a result

A table exists once its note does; tables with equal fingerprints are equal, so a resumed run reuses those that have the
fingerprints it expects, and makes the rest.
"""

import hashlib
import json
import logging
import platform
import re
import secrets
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Self

import nddup
from nddup.errors import IncompatibleSketchError, NotARunError, OutputError, OutputExistsError, UnfinishedRunError
from nddup.ground.json_text import load_object
from nddup.ground.shown import hide_settings
from nddup.scanning.input_files import RUN
from nddup.sketching.tokens import FULL_FORMAT
from nddup.storage.claim import PREFIX, Claim, FolderFiles, Say
from nddup.storage.local_storage import require_apart
from nddup.tables import READABLE

SHAPING = (
    "chardet", "fastwarc", "isal", "lxml", "numba", "numpy", "pyarrow", "PyStemmer", "resiliparse",
    "selectolax", "stop-words", "zstandard",
)  # fmt: skip
"""Libraries that decide records, texts, tokens, sketches or sets."""

SOURCES = (".py", ".txt", ".npz")
"""Suffixes of the files of the package that decide what it does: code, word lists, tables of characters."""

logger = logging.getLogger("nddup")

IN_SIGHT = frozenset([*READABLE, "kept", "tagged", "lexicon"])
"""Tables and outputs that lie in the folder itself; working tables lie in `_stages`."""

OUTPUTS = frozenset([
    "duplicates.txt", "context.fimi", "force.json", "lexicon.json", "metrics.json", "check.json", "evaluation.json",
    "evaluation", "report",
])  # fmt: skip
"""Files and folders written beside the tables, by the run and by commands that read it."""

TEXTS_BESIDE = frozenset(["duplicates.txt", "context.fimi", "force.json", "lexicon.json", "metrics.json"])
"""Those of `OUTPUTS` that the run itself writes, before its marker."""

CHANGED = "is not the file that was written, bit for bit"

FORCE = "force"
"""Among the inputs, the note on the file of `keep.force`: only tables that depend on the policy read it."""

MENDS = "`nddup run` with the same inputs and settings and --resume makes again what is damaged"

TABLE = re.compile(r"[a-z_]+")
"""The name of a table, in a note of another."""

LAYOUT = 1  # version of the folder's layout

COMPLETE, STAGES = "_COMPLETE", "_stages"


def is_ours(name: str) -> bool:
    """Return whether a run writes, and may remove, a name of its folder; a sum of Hadoop belongs to its file.

    Example:
        >>> [is_ours(name) for name in ("keep", "_COMPLETE", ".metrics.json.crc", "judged.csv")]
        [True, True, True, False]
    """
    bare = name.removeprefix(".").removesuffix(".crc") if name.endswith(".crc") else name
    return bare in IN_SIGHT | OUTPUTS | {COMPLETE, STAGES, RUN} or bare.startswith(PREFIX)


def versions() -> dict[str, str]:
    """Return all versions that made a run. Sketches can be compared only if `sketch_format` is equal.

    They are the code, the libraries that shape the tables, Python and Spark, so that a resumed run does not mix tables
    of two versions.
    """
    return {
        "nddup": nddup.__version__,
        "spark": _version_of("pyspark"),
        "sketch_format": FULL_FORMAT,
        "code": code_fingerprint(),
        "python": platform.python_version(),  # its codecs and its unicodedata decide texts
        **library_versions(),
    }


@cache
def library_versions() -> dict[str, str]:
    """Return the installed version of each of `SHAPING`."""
    return {name: _version_of(name) for name in SHAPING}


@cache
def code_fingerprint() -> str:
    """Return 16 hex digits of SHA-256 over the package's source files; the same for a folder and for a zip.

    If the code cannot be read, each process has a fingerprint of its own, so that nothing is reused.
    """
    digest, read = hashlib.sha256(), 0
    for name, content in sorted(_read_sources(files("nddup"))):
        digest.update(name.encode() + b"\0" + content)
        read += name.endswith(".py")
    return digest.hexdigest()[:16] if read else secrets.token_hex(8)


def _read_sources(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, bytes]]:
    """Yield the names and bytes of the sources at or below a folder."""
    for entry in folder.iterdir():
        if entry.name.endswith(SOURCES):
            yield prefix + entry.name, entry.read_bytes()
        elif entry.name != "__pycache__" and entry.is_dir():  # that holds thousands of kernels
            yield from _read_sources(entry, f"{prefix}{entry.name}/")


@cache
def _version_of(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # copied without its metadata, or an image without Spark
        return "unknown"


def digest(value: object) -> str:
    """Return SHA-256, in hexadecimal digits, over a value as JSON with sorted keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


def require_ours(path: str, there: Collection[str], *, may_change: bool) -> None:
    """Refuse to write a run where names are already: any, unless the run may change them; or those of no run."""
    if there and not may_change:
        raise OutputExistsError(
            f"--output {path}: exists already; give another folder, or --overwrite to replace it, or --resume to finish"
            " it"
        )
    if there and RUN not in there:
        raise OutputExistsError(f"--output {path}: holds files that are no run of nddup; it is not overwritten")


class RunFolder:
    """The output folder of one run: the notes on its tables, and the files beside them.

    How tables are read and written depends on the engine: see `SparkFolder` and `LocalFolder`.

    A note holds fingerprint, counts and files of its table. It is written after the last file of the table, and names
    each of its files with its size. If the note cannot be read, or the files differ from it, the table counts as
    missing. Notes and the marker hold a digest of themselves, and the CRC-32 of each file that they name, where this
    machine holds it: of a folder that only Hadoop opens, none is taken. A table is compared with them before it is
    reused or read.

    The fingerprint is SHA-256 over the name of the table, `versions()`, the settings that reach it and the fingerprints
    of the tables it reads (for the first, of the paths, sizes and times of the input files).

    A resumed run first removes all `OUTPUTS`, also those of `report` and `evaluate`, unless the folder holds its
    finished result. At its end it removes the tables that it neither found nor made.
    """

    def __init__(self, storage: FolderFiles, path: str) -> None:
        self._storage = storage
        self.path = path.rstrip("/")
        self._claim = Claim(self._storage, self.path)
        self._fingerprints: dict[str, str] = {}
        self._started: dict[str, float] = {}
        self._written: set[str] = set()
        self._compared: set[str] = set()

    def __enter__(self) -> Self:
        """Return the folder; leaving the context releases the claim."""
        return self

    def __exit__(self, *_: object) -> None:
        """Release the claim of `start`."""
        self._claim.release()

    def start(
        self,
        *,
        settings: Mapping[str, Any],
        inputs: Mapping[str, Any],
        overwrite: bool = False,
        resume: bool = False,
        say: Say = logger.warning,
    ) -> bool:
        """Claim the folder until its context is left, and describe the run in it.

        Args:
            settings: the settings of the run, without secrets.
            say: called with a line when the claim of a killed run is taken over.

        Returns:
            Whether `resume` is set and the folder already holds the finished result of the same inputs, settings and
            code: then nothing is changed.

        Raises:
            OutputError: if the folder holds anything and neither `overwrite` nor `resume` is set, if it holds files
                that are not a run, if it overlaps an input, or if another run works there.
        """
        require_apart(self._storage, inputs.get("paths", []), self.path)
        header = {"layout": LAYOUT, "versions": versions(), "settings": settings, "inputs": inputs}
        text = json.dumps(header, indent=2, ensure_ascii=False) + "\n"
        self._fingerprints["input"] = digest({name: value for name, value in inputs.items() if name != FORCE})
        self._fingerprints[FORCE] = digest(inputs.get(FORCE))

        there = self.look(may_change=overwrite or resume)
        if resume and self._is_result(there, text):
            return True
        self._storage.make_folder(self.path)  # an error names the folder, not a file in it
        self._claim.take(say)
        there = self.look(may_change=overwrite or resume)  # another run may have ended there meanwhile
        if resume and self._is_result(there, text):
            self._claim.release()
            return True

        # The marker is removed first, so that a half-removed run is no result; RUN stays, so that it is still a run.
        for name in sorted(there, key=lambda name: name != COMPLETE):
            if name == COMPLETE or name in OUTPUTS or (overwrite and name != RUN and is_ours(name)):
                self._storage.remove(self._at(name))
        self._storage.write_text(self._at(RUN), text)
        self._storage.make_folder(self._at(STAGES))
        return False

    def has(self, name: str, *, settings: Mapping[str, Any], reads: Sequence[str]) -> bool:
        """Return whether a table, or another sealed output, is there as this attempt would make it."""
        self._fingerprints[name] = self._fingerprint(name, settings, reads)
        self._started[name] = time.monotonic()
        note = self._note(name)
        return note.get("fingerprint") == self._fingerprints[name] and self._is_whole(name, note)

    def counted(self, name: str) -> Mapping[str, Any]:
        """Return the counts that were noted when a table was sealed; empty without a note."""
        counted: Mapping[str, Any] = self._note(name).get("counted", {})
        return counted

    def place(self, name: str) -> str:
        """Return the folder of a table."""
        return self._place(name)

    def size_of(self, name: str) -> int:
        """Return the bytes of the files of a table."""
        return sum(self._storage.sizes(self._place(name)).values())

    def begin_table(self, name: str) -> str:
        """Remove the note of an earlier table, and return the path to write the new one to. NddupError: as `seal`."""
        self._claim.check()
        self._compared.discard(name)
        self._storage.remove(self._at(f"{STAGES}/{name}.json"))
        return self._place(name)

    def seal(self, name: str, *, settings: Mapping[str, Any], reads: Sequence[str], counted: Mapping[str, Any]) -> None:
        """Write the note, as `Store.seal`. NddupError: if another run took the folder over."""
        self._claim.check()
        self._fingerprints[name] = self._fingerprint(name, settings, reads)
        note = {
            "fingerprint": self._fingerprints[name],
            "settings": settings,
            "reads": {read: self._fingerprints[read] for read in reads},
            "seconds": round(time.monotonic() - self._started.get(name, time.monotonic()), 3),
            "counted": counted,
            "files": self._storage.sizes(self._place(name)),
        }
        crcs = self._storage.digests(self._place(name))
        self._write_note(name, note if crcs is None else {**note, "crc32": crcs})
        self._compared.add(name)

    def clear(self, name: str) -> None:
        """Remove an output beside the tables, and its note."""
        self._claim.check()
        self._storage.remove(self._at(f"{STAGES}/{name}.json"))
        self._storage.remove(self._place(name))

    def stage_output(self, name: str) -> str:
        """Remove an output, and return the path to write the new one to; `publish` then moves it to its place whole."""
        for path in (self._place(name), apart := self._at(f"{STAGES}/{name}")):
            self._storage.remove(path)
        return apart

    def publish(self, name: str) -> None:
        """Move the output from its staging path to its place."""
        self._claim.check()
        self._storage.move(self._at(f"{STAGES}/{name}"), self._place(name))

    def drop(self, name: str, *, made: Sequence[str]) -> None:
        """Remove the files of a table, as `Store.drop`; its note stays, and names the tables that were made of it."""
        note = self._note(name)
        if note:
            note["dropped"] = sorted(made)
            self._write_note(name, note)
        self._storage.remove(self._at(f"{STAGES}/{name}"))

    def finish(self, metrics: Mapping[str, Any]) -> None:
        """Remove what this run did not make; write `metrics.json`, then the marker. NddupError: as `seal`."""
        self._claim.check()
        for name in sorted(IN_SIGHT - self._fingerprints.keys()):
            self.clear(name)
        for name in sorted(OUTPUTS - self._written):  # commands that read the run before may have left some
            self.remove(name)
        self._storage.write_text(self._at("metrics.json"), json.dumps(metrics, indent=2, ensure_ascii=False) + "\n")
        self._storage.write_text(self._at(COMPLETE), _spell(self._contents()) + "\n")

    def remove(self, name: str) -> None:
        """Remove a file or folder beside the tables; nothing if it is not there."""
        self._storage.remove(self._at(name))

    def write_text(self, name: str, text: Any) -> None:  # noqa: ANN401 - a text or pieces of one
        """Write a text file beside the tables, one of `OUTPUTS`."""
        self._storage.write_text(self.begin_output(name), text)

    def begin_output(self, name: str) -> str:
        """Return the path of one of `OUTPUTS`, or within it, for this attempt to write. NddupError: as `seal`."""
        if name.partition("/")[0] not in OUTPUTS:
            raise ValueError(f"{name} is not in OUTPUTS: a resumed run would leave it as it is")
        self._claim.check()
        self._written.add(name.partition("/")[0])
        return self._at(name)

    def read_text(self, name: str) -> str:
        """Read a text file beside the tables; of a finished run, as it was written.

        Raises:
            OutputError: if it is not there or cannot be read, or is not as it was written.
        """
        self.require_same(name)
        return self._storage.read_text(self._at(name))

    def require_same(self, name: str) -> bool:
        """Compare a table, or a text of a finished run, with the note made when it was written; once for this object.

        Returns:
            Whether anything was noted to compare it with.

        Raises:
            OutputError: if a file has changed, is missing or was added.

        Cost: reads the files, at several GB a second.
        """
        if name in self._compared:
            return True
        is_text = name in TEXTS_BESIDE or name == RUN
        noted = self._texts().get(name) if is_text else self._note(name).get("crc32")
        if noted is None:
            return False
        there = self._storage.digests(self._at(name) if is_text else self._place(name))
        if there is not None and there != noted:
            noted = noted if isinstance(noted, dict) else {}  # a note may be anyone's
            file = min(file for file in there.keys() | noted.keys() if there.get(file) != noted.get(file))
            where = name if file == name else f"{name}/{file}"
            raise OutputError(f"{self.path}/{where}: {'is missing' if file not in there else CHANGED}; {MENDS}")
        self._compared.add(name)
        return True

    def open(self) -> dict[str, Any]:
        """Read the metrics of a finished run.

        Raises:
            OutputError: if the folder is not a run, the run did not finish, or its metrics are damaged.
            IncompatibleSketchError: if its sketches have another format than this version's.
        """
        there = self._storage.children(self.path)
        if not there and not self._storage.exists(self.path):
            raise NotARunError(f"{self.path}: no such folder")
        if RUN not in there:
            raise NotARunError(f"{self.path}: is not a run of nddup (it has no {RUN})")
        if COMPLETE not in there:
            raise UnfinishedRunError(f"{self.path}: the run did not finish; what it holds is not a result")
        self._refuse_links()
        self.require_same(RUN)
        metrics = self.read_json("metrics.json")
        if isinstance(metrics.get("settings"), dict):  # earlier versions wrote secrets as well
            metrics["settings"] = hide_settings(metrics["settings"])
        versioned = metrics.get("versions")
        made, known = versioned.get("sketch_format") if isinstance(versioned, dict) else None, FULL_FORMAT
        if made != known:
            raise IncompatibleSketchError(
                f"{self.path}: its sketches are of format {made}, this version reads {known}; run the job again"
            )
        return metrics

    def read_json(self, name: str) -> dict[str, Any]:
        """Read a file that holds a JSON object.

        Raises:
            OutputError: if it is not there, or holds none: one line that says what mends it.
        """
        try:
            return load_object(self.read_text(name))
        except ValueError as error:
            raise OutputError(f"{self.path}/{name}: is damaged, expected a JSON object; {MENDS}") from error

    def noted_tables(self) -> list[str]:
        """Return the tables and texts of a finished run that its marker names."""
        marker = self._marker()
        tables, texts = marker.get("tables"), marker.get("texts")
        named = [RUN, *(tables if isinstance(tables, list) else []), *(texts if isinstance(texts, dict) else [])]
        return sorted(name for name in {RUN, *IN_SIGHT, *TEXTS_BESIDE} if name in named)

    def holds(self, name: str) -> bool:
        """Return whether a table or a file of this name is there."""
        return self._storage.exists(self._at(name))

    def _at(self, name: str) -> str:
        return f"{self.path}/{name}"

    def _place(self, name: str) -> str:
        return self._at(name if name in IN_SIGHT else f"{STAGES}/{name}")

    def look(self, *, may_change: bool) -> list[str]:
        """Return the names in the folder, without claims; raise OutputError if this run may not write to it."""
        there = self._storage.children(self.path) if self._storage.exists(self.path) else []
        there = [name for name in there if not name.startswith(PREFIX)]
        require_ours(self.path, there, may_change=may_change)
        self._refuse_links()
        return there

    def _refuse_links(self) -> None:
        """Refuse a folder in which a name leads outside, or blocks who reads it: nddup writes neither."""
        if link := self._storage.find_link(self.path):
            raise OutputError(f"{link}: is a link or a special file, which no run writes; the folder is not used")

    def _is_result(self, there: Sequence[str], header: str) -> bool:
        return COMPLETE in there and self._reads_as(RUN, header) and self._is_sound()

    def _fingerprint(self, name: str, settings: Mapping[str, Any], reads: Sequence[str]) -> str:
        return digest([name, versions(), settings, {read: self._fingerprints[read] for read in reads}])

    def _note(self, name: str) -> dict[str, Any]:
        """Return the note of a table; empty if it is missing or cannot be read to its end."""
        with suppress(OutputError, ValueError):
            return _read_own(self._storage.read_text(self._at(f"{STAGES}/{name}.json")))
        return {}

    def _write_note(self, name: str, note: Mapping[str, Any]) -> None:
        self._storage.write_text(self._at(f"{STAGES}/{name}.json"), _spell(note, indent=2) + "\n")

    def _marker(self) -> dict[str, Any]:
        """Return what the marker of a finished run says."""
        try:
            return _read_own(self._storage.read_text(self._at(COMPLETE)))
        except ValueError:
            raise OutputError(f"{self.path}/{COMPLETE}: is damaged; {MENDS}") from None

    def _texts(self) -> Mapping[str, Any]:
        """Return the CRC-32 of the files of each text of a finished run; none for a run that is still made."""
        if self._fingerprints or not self._storage.exists(self._at(COMPLETE)):
            return {}
        texts = self._marker().get("crc32", {})
        return texts if isinstance(texts, dict) else {}

    def _is_whole(self, name: str, note: Mapping[str, Any], *, above: frozenset[str] = frozenset()) -> bool:
        """Return whether a table has the files of its note; of a dropped one, whether all tables made of it have.

        A note may be anyone's: `above` are the tables that were asked about already, which cannot be made of this one.
        """
        if made := note.get("dropped"):
            seen = above | {name}
            return isinstance(made, list) and all(
                isinstance(one, str) and TABLE.fullmatch(one) and one not in seen
                and self._is_whole(one, self._note(one), above=seen) for one in made
            )  # fmt: skip
        place = self._place(name)
        is_whole = bool(note) and self._storage.sizes(place) == note.get("files")
        if is_whole and name not in self._compared and "crc32" in note:
            is_whole = self._storage.digests(place) in (None, note["crc32"])
            self._compared |= {name} if is_whole else set()
        return is_whole

    def _contents(self) -> dict[str, Any]:
        noted = {name.removesuffix(".json") for name in self._storage.children(self._at(STAGES))}
        sizes = self._storage.sizes(self.path)
        texts = {name: size for name, size in sizes.items() if name in TEXTS_BESIDE}
        crcs = {name: self._storage.digests(self._at(name)) for name in (*texts, RUN)}
        return {
            "tables": sorted(IN_SIGHT & noted),
            "texts": texts,
            "crc32": {name: crc for name, crc in crcs.items() if crc is not None},
        }

    def _is_sound(self) -> bool:
        """Return whether the marker can be read and all that it names is there, whole; working tables may be gone."""
        contents = self._contents()
        try:
            marker = self._marker()
        except OutputError:
            return False
        if not contents["crc32"]:  # Hadoop computes none: the sizes decide, whichever engine wrote the marker
            marker.pop("crc32", None)
            contents.pop("crc32")
        if marker != json.loads(json.dumps(contents)):
            return False
        return all(self._is_whole(name, self._note(name)) for name in contents["tables"])

    def _reads_as(self, name: str, text: str) -> bool:
        with suppress(OutputError, ValueError):
            return self._storage.read_text(self._at(name)) == text
        return False


def _spell(value: Mapping[str, Any], *, indent: int | None = None) -> str:
    """Return an object as JSON, with the digest of all else in it."""
    plain = json.loads(json.dumps(value))
    return json.dumps({**plain, "digest": digest(plain)}, indent=indent)


def _read_own(text: str) -> dict[str, Any]:
    """Return the object that `_spell` wrote, without its digest; an earlier version wrote none."""
    value = load_object(text)
    stored = value.pop("digest", None)
    if stored is not None and stored != digest(value):
        raise ValueError("its digest differs")
    return value
