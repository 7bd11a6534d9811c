"""Find the pairs of `nddup truth` on this machine: sketches and pairs are in memory, the texts on disk."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.compute as pc

from nddup.local import engine
from nddup.local.evaluating import edit_pairs
from nddup.local.evaluating.edit_pairs import Measured, Measuring, Texts
from nddup.local.memory import Memory
from nddup.local.reading.workers import Workers
from nddup.results.truth import Asked, Made, Truth, settings_of_candidates
from nddup.run.engines import memory_of
from nddup.run.inputs_again import find_again
from nddup.scanning.read_again import Texts as ReadTexts
from nddup.settings.derive import processes_of
from nddup.settings.scan_rules import limits_of, text_rule
from nddup.settings.schema import Config
from nddup.steps import Steps
from nddup.storage.local_folder import LocalFolder
from nddup.storage.local_storage import LocalStorage

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
        read = workers.scan(again.collection, ReadTexts(text_rule(again.config)), limits_of(again.config))
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
