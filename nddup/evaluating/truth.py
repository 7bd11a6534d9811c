"""`nddup truth RUN --similarity S --output FILE`: make a reference list by edit similarity, as ROMIP's was made.

The texts are read again from the inputs of the run. Comparing all pairs by edit distance would take too long, so only
candidates are compared: pairs whose sketches have at least a low resemblance. To measure what this misses, a sample of
documents is compared with all documents, and the report says how many of the pairs so found are not in the list.

The run and its inputs are read on this machine, with sketches and pairs in memory. Texts lie on the disk and are
measured in threads, by `nddup.verifying.edit_similarity`.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.embedded import steps as engine
from nddup.embedded.memory import Memory
from nddup.embedded.workers import Workers
from nddup.engines.choose import memory_of
from nddup.errors import ConfigError
from nddup.ground.columns import pieces_of
from nddup.ground.progress import Steps
from nddup.ground.shown import counted, csv_line
from nddup.scanning.read_again import Texts as ReadTexts
from nddup.settings.load import build_config
from nddup.settings.plan import found_exactly, processes_of, record_limits, text_rule
from nddup.settings.schema import Config
from nddup.stages.inputs_found import find_again, paths_of
from nddup.storage.local_folder import LocalFolder, OnRows
from nddup.storage.local_storage import LocalStorage, is_local, require_new
from nddup.verifying.edit_similarity import CHARACTERS, can_reach, measure, spell_out

CANDIDATES = 0.4
"""Minimum resemblance of the sketches of a candidate."""

SAMPLE = 50
"""Number of sampled documents that are compared with all others."""


@dataclass(frozen=True)
class Asked:
    """The requested content of a list.

    Attributes:
        similarity: least edit similarity of its pairs, in (0, 1].
        least: least resemblance of the sketches of the pairs that are compared, in (0, 1].
        sampled: number of documents that are compared with all, to measure what the candidates miss; 0: none.
    """

    similarity: float
    least: float = CANDIDATES
    sampled: int = SAMPLE

    def check(self) -> None:
        """Raise ConfigError if a number is out of its range."""
        for name, value in (("--similarity", self.similarity), ("--candidates", self.least)):
            if not 0 < value <= 1:
                raise ConfigError(f"{name} {value}: expected a number in (0, 1]")


@dataclass(frozen=True)
class Truth:
    """How a reference list was made, and the counts of comparisons and pairs."""

    similarity: float
    measure: str
    least: float
    documents: int
    cut_texts: int
    candidates: int
    unlisted: int
    pairs: int
    sampled: int
    sampled_pairs: int
    sampled_found: int

    def lines(self) -> list[str]:
        """Return the counts in words, a line each."""
        measure = "a resemblance" if self.measure == "resemblance" else "an overlap"
        pairs, documents = counted(self.pairs, "pair"), counted(self.documents, "document")
        sentences = [
            f"edit similarity at least {self.similarity}: {pairs} of {documents}",
            f"compared: {counted(self.candidates, 'pair')} whose sketches have {measure} of at least {self.least}",
        ]
        if self.sampled:
            sentences.append(
                f"missed by that: of the pairs of {counted(self.sampled, 'document')}, compared with all others,"
                f" {self.sampled_pairs - self.sampled_found:,} of {self.sampled_pairs:,} are not in this list"
            )
        if self.unlisted:
            sentences.append(
                f"the list is not complete: {counted(self.unlisted, 'group')} of pairs, too many to be compared"
            )
        if self.cut_texts:
            sentences.append(f"compared by the first {CHARACTERS:,} characters: {counted(self.cut_texts, 'text')}")
        return sentences


class Made(NamedTuple):
    """The counts, and the pairs in the order of their ids: doc_a, doc_b, similarity."""

    truth: Truth
    pairs: Iterable[tuple[str, str, float]]


BLOCK = 32_000_000
"""Maximum number of characters of the pairs that are measured in one call: they are in memory as Python strings."""


def make_truth(path: str, asked: Asked, output: str, steps: Steps) -> Truth:
    """Write the pairs of a run's documents whose texts are alike by edit distance.

    Args:
        output: path of the CSV file to write: comments, a header `id_a,id_b,similarity`, then a pair per line, in the
            order of the ids.

    Returns:
        How the list was made, with its counts.

    Raises:
        ConfigError: if a number is out of its range, or the run or an input of it is not on this machine.
        OutputError: if `output` exists, lies in an input or cannot be written, or the folder is not a finished run.
        NeedsSparkError: if the candidates may need more than `local.memory`.
        NddupError: if the inputs changed since the run.

    Cost: reads the inputs once; all processors compute distances, and the texts of one block of pairs are in memory. A
    distance takes at most the product of both lengths / 64 steps, fewer where
    the texts soon differ. The sample costs `sampled` distances per document.
    """
    asked.check()
    steps.begin("open the run")
    if not is_local(path):
        raise ConfigError(f"{path}: not on this machine, where truth reads; give a copy of the run")
    folder, files = LocalFolder(path), LocalStorage()
    folder.open()
    inputs = paths_of(folder)
    if away := [one for one in inputs if not is_local(one)]:
        raise ConfigError(f"{away[0]}: not on this machine, where truth reads; make a run of a copy or of a sample")

    require_new(files, inputs, output, kind="file")
    with _find_alike(folder, asked, steps) as made:
        files.write_text(output, _lines(made))
        return made.truth


def settings_of_candidates(config: Config, least: float) -> Config:
    """Return the settings of a run, changed so that its sketches give every pair with at least this resemblance.

    Sketches whose size depends on the document's length show no resemblance: for them, `least` applies to the overlap
    as a share of the larger sketch.

    Raises:
        ConfigError: if `least` is not a share.
    """
    sketch = found_exactly(config.sketch)
    pairs = {
        "measure": "resemblance" if sketch.growth == "fixed" else "overlap",
        "threshold": float(least),
        "confirm": "none",
        **{name: getattr(config.pairs, name) for name in ("max_postings", "max_edges", "max_comparisons")},
    }
    changed = {"sketch": sketch.model_dump(), "pairs": pairs, "keep": {}}  # keep.max_lost needs other pairs
    return build_config({**config.model_dump(), **changed}, origin="--candidates")


def _lines(made: Made) -> Iterator[str]:
    yield from (f"# {line}\n" for line in made.truth.lines())
    yield "id_a,id_b,similarity\n"
    for first, second, similarity in made.pairs:
        yield csv_line([first, second, round(similarity, 6)])


class Measuring(NamedTuple):
    """The least similarity, in (0, 1]; the number of threads that measure; the receiver of their progress.

    It is called with the number of pairs, or sampled documents, that were measured, and with that of all.
    """

    similarity: float
    threads: int = 1
    advance: OnRows | None = None


class Texts(NamedTuple):
    """The texts of documents, in the order of their ids.

    Attributes:
        doc_ids: n ids, ascending.
        places: (n,), the place of each text in `spelled`; several documents may have one.
        lengths: (n,), in characters.
        is_cut: (n,), whether the text was cut.
        spelled: the texts as they are compared, in chunks that lie on the disk.
    """

    doc_ids: list[str]
    places: NDArray[np.int64]
    lengths: NDArray[np.int32]
    is_cut: NDArray[np.bool_]
    spelled: pa.ChunkedArray

    def take(self, rows: NDArray[np.int64]) -> list[str]:
        """Return the texts of some documents. Only the chunks that hold them are read."""
        places, back = np.unique(self.places[rows], return_inverse=True)
        ends = np.cumsum([len(chunk) for chunk in self.spelled.chunks])
        chunks = np.searchsorted(ends, places, "right")
        texts: list[str] = []
        for number in np.unique(chunks):
            chunk = self.spelled.chunk(int(number))
            inside = places[chunks == number] - (ends[number] - len(chunk))
            texts += chunk.take(pa.array(inside)).to_pylist()
        return [texts[at] for at in back]


class Measured(NamedTuple):
    """Pairs of rows of `Texts`, first < second, and their similarity; (m,) each, sorted by (first, second)."""

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    similarity: NDArray[np.float64]


def place_texts(found_texts: pa.Table, documents: pa.Table, spool: Path) -> Texts:
    """Write the texts of documents to a file, spelled as they are compared, and index them by document.

    Args:
        found_texts: FOUND_TEXTS, which may lie on the disk.
        documents: doc_id, source, content_fingerprint.
        spool: a folder for the file.

    A record is recognised by its file and its content. If several texts have one content, the least is taken; a
    document whose record is not found is left out.

    Cost: one pass over the texts; a batch of them is in memory, and some 100 bytes a document.
    """
    lengths, cut, path = [np.empty(0, np.int32)], [np.empty(0, np.bool_)], spool / "spelled.arrow"
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, pa.schema([("text", pa.string())])) as writer:
        for chunk in found_texts["text"].chunks:
            spelled = spell_out(chunk)
            writer.write_batch(pa.record_batch([spelled.texts], names=["text"]))
            lengths.append(spelled.lengths.to_numpy())
            cut.append(spelled.is_cut.to_numpy(zero_copy_only=False))
    with pa.memory_map(str(path)) as mapped:
        texts = pa.ipc.open_file(mapped).read_all()["text"]

    all_lengths, all_cut = np.concatenate(lengths), np.concatenate(cut)
    rows = documents.take(pc.sort_indices(documents["doc_id"]))
    places = _places(_keys(rows), _keys(found_texts), texts)
    rows, places = rows.filter(pa.array(places >= 0)), places[places >= 0]
    return Texts(rows["doc_id"].to_pylist(), places, all_lengths[places], all_cut[places], texts)


def measure_pairs(pairs: pa.Table, texts: Texts, measuring: Measuring) -> Measured:
    """Return the candidates whose texts reach this similarity.

    Args:
        pairs: doc_a, doc_b; a pair with a document that has no text is left out.
    """
    ids = pa.array(texts.doc_ids, pa.string())
    first, second = (_numbers(pairs[name], ids) for name in ("doc_a", "doc_b"))
    is_there = (first >= 0) & (second >= 0)
    return _measure(first[is_there], second[is_there], texts, measuring)


def compare_sampled(texts: Texts, measuring: Measuring, *, number: int) -> Measured:
    """Return the pairs of sampled documents with all others that reach this similarity, each once.

    No candidates are needed. The sample is the `number` documents with the smallest SHA-256 of their id.
    """
    digests = [sha256(name.encode()).hexdigest() for name in texts.doc_ids]
    chosen = sorted(range(len(digests)), key=digests.__getitem__)[:number]
    every = np.arange(len(texts.doc_ids))
    measured = [Measured(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))]
    for done, one in enumerate(chosen):
        others = every[(every != one) & can_reach(texts.lengths[one], texts.lengths, measuring.similarity)]
        ends = np.minimum(others, one), np.maximum(others, one)
        measured.append(_measure(*ends, texts, measuring._replace(advance=None)))
        if measuring.advance:
            measuring.advance(done + 1, len(chosen))

    first, second, similar = (np.concatenate(column) for column in zip(*measured, strict=True))
    places = np.unique(np.stack([first, second]), axis=1, return_index=True)[1]  # two chosen ones meet twice
    return Measured(first[places], second[places], similar[places])


def count_common(first: Measured, second: Measured) -> int:
    """Count the pairs that are in both."""
    width = 1 + int(max(*(one.second.max(initial=0) for one in (first, second))))
    return len(np.intersect1d(first.first * width + first.second, second.first * width + second.second))


def _measure(first: NDArray[np.int64], second: NDArray[np.int64], texts: Texts, measuring: Measuring) -> Measured:
    """Return the pairs that reach the similarity, sorted by row; a block of texts is measured at a time."""
    similarity, threads, advance = measuring
    near = can_reach(texts.lengths[first], texts.lengths[second], similarity)
    order = np.lexsort((second[near], first[near]))
    first, second = first[near][order], second[near][order]
    sizes = texts.lengths[first].astype(np.int64) + texts.lengths[second]
    similar = np.zeros(len(first))
    for block in pieces_of(sizes, BLOCK):
        both = texts.take(first[block]), texts.take(second[block])
        similar[block] = measure(*both, similarity=similarity, threads=threads)
        if advance:
            advance(block.stop, len(first))
    kept = similar >= similarity
    return Measured(first[kept], second[kept], similar[kept])


def _keys(rows: pa.Table) -> pa.ChunkedArray:
    return pc.binary_join_element_wise(rows["source"].cast(pa.binary()), rows["content_fingerprint"], b"\0")


def _places(wanted: pa.ChunkedArray, keys: pa.ChunkedArray, texts: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return the row of each wanted key, that with the least text if there are several, -1 if there is none."""
    coded = keys.combine_chunks().dictionary_encode()
    codes = coded.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(codes[order]) != 0)[: len(order)])
    first, counts = order[starts].astype(np.int64), np.diff(np.append(starts, len(order)))
    for number in np.flatnonzero(counts > 1):
        same = order[starts[number] : starts[number] + counts[number]]
        first[number] = min(same, key=lambda row: (texts[int(row)].as_py(), row))
    numbers = _numbers(wanted, coded.dictionary)
    return np.where(numbers >= 0, np.append(first, -1)[numbers], -1)


def _numbers(values: pa.ChunkedArray, among: pa.Array) -> NDArray[np.int64]:
    places = pc.index_in(values, value_set=among).fill_null(-1).combine_chunks()
    return np.asarray(places.to_numpy(zero_copy_only=False), np.int64)


@contextmanager
def _find_alike(folder: LocalFolder, asked: Asked, steps: Steps) -> Iterator[Made]:
    """Find the pairs of a run; they are read before the context ends."""
    again = find_again(folder, LocalStorage())
    config = settings_of_candidates(again.config, asked.least)
    with (
        TemporaryDirectory(prefix="nddup-", ignore_cleanup_errors=True) as spool,
        _workers(config, Path(spool), steps) as workers,
    ):
        steps.begin("find the candidates")
        documents = folder.read("documents")
        postings = sum(len(chunk.flatten()) for chunk in documents["sketch"].chunks)
        workers.memory.hold(len(documents), postings)
        paired = engine.pair(documents, config, workers)

        steps.begin("read the texts")
        read = workers.scan(again.collection, ReadTexts(text_rule(again.config)), record_limits(again.config))
        named = documents.select(["doc_id", "source", "content_fingerprint"])
        texts = place_texts(read, named, Path(spool))

        measuring = Measuring(asked.similarity, workers.count, steps.advance)
        steps.begin("measure the candidates")
        measured = measure_pairs(paired.pairs, texts, measuring)
        steps.begin("measure a sample against all")
        number = min(asked.sampled, len(texts.doc_ids))
        sample = compare_sampled(texts, measuring, number=number) if number else measured

        steps.begin("write the list")
        yield Made(_tell(asked, config, paired, texts, measured, sample), _name(measured, texts))


def _workers(config: Config, spool: Path, steps: Steps) -> Workers:
    def tell(name: str, done: int, whole: int) -> None:
        del name  # the steps of the command have names of their own
        steps.advance(done, whole)

    memory = Memory(memory_of(config), advice="raise --candidates, or make the list of a sample of the documents")
    return Workers(processes_of(config), spool=spool / "rows", progress=tell, memory=memory)


def _tell(  # noqa: PLR0913, PLR0917 - what is counted
    asked: Asked, config: Config, paired: engine.Paired, texts: Texts, measured: Measured, sample: Measured
) -> Truth:
    stars = pc.sum(paired.pairs["star"]).as_py() or 0
    return Truth(
        similarity=asked.similarity,
        measure=config.pairs.measure,
        least=asked.least,
        documents=len(texts.doc_ids),
        cut_texts=int(texts.is_cut.sum()),
        candidates=len(paired.pairs),
        unlisted=stars + len(paired.led.nodes),
        pairs=len(measured.first),
        sampled=min(asked.sampled, len(texts.doc_ids)),
        sampled_pairs=len(sample.first),
        sampled_found=count_common(sample, measured),
    )


def _name(measured: Measured, texts: Texts) -> Iterator[tuple[str, str, float]]:
    """Yield the pairs with their ids; the rows are already in the order of the ids."""
    for first, second, similarity in zip(*measured, strict=True):
        yield texts.doc_ids[first], texts.doc_ids[second], float(similarity)
