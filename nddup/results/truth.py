"""`nddup truth RUN --similarity S --output FILE`: make a reference list by edit similarity, as ROMIP's was made.

The texts are read again from the inputs of the run. Comparing all pairs by edit distance would take too long, so only
candidates are compared: pairs whose sketches have at least a low resemblance. To measure what this misses, a sample of
documents is compared with all documents, and the report says how many of the pairs so found are not in the list.

`truth_here` measures on this machine, `truth_on_spark` on Spark.

Find the pairs of `nddup truth` on this machine: sketches and pairs are in memory, the texts on disk.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pyarrow.compute as pc

from nddup.errors import ConfigError, OutputError
from nddup.local import engine
from nddup.local.evaluating import edit_pairs
from nddup.local.evaluating.edit_pairs import Measured, Measuring, Texts
from nddup.local.memory import Memory
from nddup.local.reading.workers import Workers
from nddup.results.list_questions import Files
from nddup.run.engines import memory_of
from nddup.scanning.read_again import Texts as ReadTexts
from nddup.settings.load import build_config
from nddup.settings.plan import found_exactly, processes_of, record_limits, text_rule
from nddup.settings.schema import Config
from nddup.shown import csv_line
from nddup.stages.inputs_found import find_again
from nddup.steps import Steps
from nddup.storage.local_folder import LocalFolder
from nddup.storage.local_storage import LocalStorage, require_apart
from nddup.verifying.edit_similarity import CHARACTERS

CANDIDATES = 0.4
"""Least resemblance of the sketches of a candidate."""

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
    """How a reference list was made, and the counts of what was compared and found."""

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
        said = [
            f"edit similarity at least {self.similarity}: {self.pairs:,} pairs of {self.documents:,} documents",
            f"compared: {self.candidates:,} pairs whose sketches have {measure} of at least {self.least}",
        ]
        if self.sampled:
            said.append(
                f"missed by that: of the pairs of {self.sampled:,} documents, compared with all others,"
                f" {self.sampled_pairs - self.sampled_found:,} of {self.sampled_pairs:,} are not in this list"
            )
        if self.unlisted:
            said.append(f"{self.unlisted:,} groups of pairs were too many to be compared: the list is not complete")
        if self.cut_texts:
            said.append(f"{self.cut_texts:,} texts were compared by their first {CHARACTERS:,} characters")
        return said


class Made(NamedTuple):
    """The counts, and the pairs in the order of their ids: doc_a, doc_b, similarity."""

    truth: Truth
    pairs: Iterable[tuple[str, str, float]]


Maker = Callable[[Asked], AbstractContextManager[Made]]
"""Finds the pairs of one run."""


def make_truth(maker: Maker, asked: Asked, output: str, files: Files, *, inputs: Sequence[str] = ()) -> Truth:
    """Write the pairs of a run's documents whose texts are alike by edit distance.

    Args:
        maker: finds the pairs.
        asked: the requested content of the list.
        output: path of the CSV file to write: comments, a header `id_a,id_b,similarity`, then a pair per line, in the
            order of the ids.
        files: the file system of the output.
        inputs: the inputs of the run, where the list may not be written.

    Returns:
        How the list was made, with its counts.

    Raises:
        ConfigError: if a number is out of its range.
        OutputError: if `output` exists, lies in an input or cannot be written, or the folder is not a finished run.
        NddupError: if the inputs changed since the run.

    Cost: reads the inputs once; an edit distance takes at most the product of both lengths / 64 steps, fewer where
    the texts soon differ. The sample costs `sampled` distances per document.
    """
    asked.check()
    require_apart(files, inputs, output)
    if files.exists(output):
        raise OutputError(f"--output {output}: exists already; give another file")
    with maker(asked) as made:
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
    return build_config({**config.model_dump(), "sketch": sketch.model_dump(), "pairs": pairs}, origin="--candidates")


def _lines(made: Made) -> Iterator[str]:
    yield from (f"# {line}\n" for line in made.truth.lines())
    yield "id_a,id_b,similarity\n"
    for first, second, similarity in made.pairs:
        yield csv_line([first, second, round(similarity, 6)])


STEPS = 5
"""Number of steps of `find_here`, for progress."""


@contextmanager
def find_here(path: str, asked: Asked, steps: Steps) -> Iterator[Made]:
    """Find the pairs of a run in a folder of this machine, as `nddup.results.truth.Maker`.

    Args:
        path: the run's folder.
        asked: the requested content of the list.
        steps: progress.

    Raises:
        NeedsSparkError: if the candidates may need more than `local.memory`.

    Cost: all processors compute the distances; the texts of one block of pairs are in memory.
    """
    folder = LocalFolder(path)
    folder.open()
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
        texts = edit_pairs.place_texts(read, named, Path(spool))

        measuring = Measuring(asked.similarity, workers.count, steps.far)
        steps.begin("measure the candidates")
        found = edit_pairs.measure_pairs(paired.pairs, texts, measuring)
        steps.begin("measure a sample against all")
        number = min(asked.sampled, len(texts.doc_ids))
        sample = edit_pairs.compare_sampled(texts, measuring, number=number) if number else found

        steps.begin("write the list")
        yield Made(_tell(asked, config, paired, texts, found, sample), _name(found, texts))


def _workers(config: Config, spool: Path, steps: Steps) -> Workers:
    def tell(name: str, done: int, whole: int) -> None:
        del name  # the steps of the command have names of their own
        steps.far(done, whole)

    memory = Memory(memory_of(config), advice="give --master, for Spark")
    return Workers(processes_of(config), spool=spool / "rows", progress=tell, memory=memory)


def _tell(  # noqa: PLR0913, PLR0917 - what is counted
    asked: Asked, config: Config, paired: engine.Paired, texts: Texts, found: Measured, sample: Measured
) -> Truth:
    stars = pc.sum(paired.pairs["star"]).as_py() or 0
    return Truth(
        similarity=asked.similarity,
        measure=config.pairs.measure,
        least=asked.least,
        documents=len(texts.doc_ids),
        cut_texts=int(texts.is_cut.sum()),
        candidates=len(paired.pairs),
        unlisted=stars + len(paired.large),
        pairs=len(found.first),
        sampled=min(asked.sampled, len(texts.doc_ids)),
        sampled_pairs=len(sample.first),
        sampled_found=edit_pairs.count_common(sample, found),
    )


def _name(found: Measured, texts: Texts) -> Iterator[tuple[str, str, float]]:
    """Yield the pairs with their ids; the rows are already in the order of the ids."""
    for first, second, similarity in zip(*found, strict=True):
        yield texts.doc_ids[first], texts.doc_ids[second], float(similarity)
