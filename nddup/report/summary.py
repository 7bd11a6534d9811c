"""The results of a run in words, the same for the terminal and the report."""

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from nddup.ground.metrics import CountedFile, FramedHost, KeepMetrics, RunMetrics, SketchMetrics
from nddup.ground.shown import MOST_NAMED, counted, name_some, spell_size
from nddup.mining.modes import MODES
from nddup.scanning.input_files import count_reasons
from nddup.settings.idle import say_idle
from nddup.settings.schema import say_estimated
from nddup.settings.stored import ignored_of
from nddup.sketching.accuracy import say_missed

SHORT = 50
"""Median tokens below which a run says what it finds of short texts."""

SHINGLES_OF = ("min-s", "super", "min-perm", "minhash", "mod-m", "mod-pow2")
"""Kinds whose features are shingles, and whose resemblance is that of the texts."""

NAMED_FILES = 3
"""Maximum number of unread files that a note names one by one."""

NAMED_KINDS = 6
"""Maximum number of kinds of unread files that a note names."""


class Line(NamedTuple):
    """A number of the run, what it counts, and a remark of one line or two."""

    name: str
    number: int
    note: str


def headline(metrics: RunMetrics) -> list[Line]:
    """Return the main numbers of a run, read, rejected, found and kept, in the order of its stages."""
    rows, stages = metrics.rows, metrics.stages
    pairs = metrics.settings["pairs"]
    return [
        Line("records read", metrics.records, _read_from(metrics)),
        Line("rejected", rows["rejects"], _reasons(stages.sketch.rejected)),
        Line(
            "documents",
            rows["documents"],
            f"{metrics.equal_sketches:,} {'has' if metrics.equal_sketches == 1 else 'have'} the same"
            f" {'text' if metrics.stages.pairs.edits else 'sketch'} as another",
        ),
        Line(
            "near-duplicate pairs",
            rows["pairs"],
            f"{pairs['measure']} at least {pairs['threshold']}{_confirmed(metrics)}",
        ),
        Line("clusters", rows["clusters"], _of_clusters(rows["clusters"], metrics)),
        Line("kept", stages.keep.kept, _share(stages.keep.kept, rows["documents"])),
        Line("removed", stages.keep.removed, _why_removed(stages.keep.removed, stages.keep.forced_removed)),
    ]


def _why_removed(removed: int, forced: int) -> str:
    if not forced:
        return "each has a kept near-duplicate"
    return f"{forced:,} by keep.force" + ("; each other has a kept near-duplicate" if removed > forced else "")


def notes(metrics: RunMetrics) -> list[str]:
    """Return a sentence for everything that was left out, cut, replaced or without effect; empty if nothing was."""
    pairs, clusters, texts = metrics.stages.pairs, metrics.stages.clusters, metrics.stages.texts
    sentences = _ignored_notes(ignored_of(metrics.settings))
    sentences += _short_notes(metrics.stages.sketch.median_tokens or 0, metrics.settings)
    sentences += [*_sketch_notes(metrics.stages.sketch), *_document_notes(metrics)]
    limit = metrics.settings["input"].get("limit")
    if limit is not None and metrics.records >= limit:
        sentences.insert(0, f"a first try: reading stopped after {counted(limit, 'record')} (input.limit)")

    if pairs.edits and pairs.edits.bounded:
        sentences.append(
            f"by a lower bound were compared {counted(pairs.edits.bounded, 'pair')} of long texts: of these,"
            f" {pairs.edits.bounded_unconfirmed:,} not confirmed, which may be near-duplicates"
        )

    if clusters.pairs_below_support:
        sentences.append(
            f"{counted(clusters.pairs_below_support, 'pair', 'share')} fewer features than clusters.support: in no"
            " cluster together"
        )
    if clusters.fpgrowth_components:
        others = clusters.components - clusters.fpgrowth_components
        sentences.append(
            f"FP-Growth mined {counted(clusters.fpgrowth_components, 'component')}, the pivot miner {others:,} that are"
            " larger or too many for it (clusters.miner, clusters.fpgrowth_limit)"
        )
    if clusters.covered_components:
        sentences.append(
            f"{counted(clusters.covered_components, 'connected group', 'have')} too many sets to list all: covered by"
            f" {clusters.covered_clusters:,}, every pair in one of them"
        )
    if clusters.led_clusters:
        sentences.append(
            f"{counted(clusters.led_clusters, 'cluster')} around leaders, of families too large for all their sets:"
            " every document with a near-duplicate is in one"
        )
    if clusters.led_components:
        sentences.append(
            f"{counted(clusters.led_components, 'component', 'have')} more pairs than pairs.max_edges: of these,"
            f" pairs of two documents that do not lead are not listed, at most {clusters.unlisted_pairs:,}"
        )

    keep = metrics.stages.keep
    for counts, what in ((keep.without_value, "no"), (keep.unparsable, "no number as")):
        sentences += [
            f"keep.policy: {counted(n, 'document', 'have')} {what} {path}: they come last" for path, n in counts.items()
        ]
    sentences += _keep_notes(keep, metrics.stages.pairs.limited)
    if texts and texts.beyond_files:
        sentences.append(
            f"{counted(texts.beyond_files, 'cluster')} chosen for the report, in files beyond output.texts_read: shown"
            " without texts"
        )
    return sentences + say_idle(metrics.settings) + (metrics.unused or [])


def _sketch_notes(sketch: SketchMetrics) -> list[str]:
    sentences = []
    if sketch.skipped_files:
        reasons = count_reasons(file.why for file in sketch.skipped_files)
        sentences.append(f"{_files(len(sketch.skipped_files))} skipped ({reasons}), listed in metrics.json")
    if sketch.unread_files:
        sentences += _unread_notes(sketch)
    if sketch.changed_files:
        names = ", ".join(sketch.changed_names[:NAMED_FILES]) + (", …" if sketch.changed_files > NAMED_FILES else "")
        sentences.append(
            f"{_files(sketch.changed_files)} changed while the run read them ({names}): the tables may mix two states;"
            " run again with --overwrite"
        )
    if sketch.respelled_names:
        sentences.append(
            f"{_files(sketch.respelled_names)} with names that are not UTF-8: in source, % and two digits stand for"
            " each such byte"
        )
    if sketch.made_up_ids:
        sentences.append(f"{counted(sketch.made_up_ids, 'document')} without an id: named file#record")
    if sketch.renamed_ids:
        sentences.append(
            f"{counted(sketch.renamed_ids, 'document', 'have')} an id that an earlier record of other content has:"
            " named file#record; set input.id to a column that no two records share, input.id_prefix=source where"
            " ids restart in each file, or leave these names"
        )
    sentences += [*_encoding_notes(sketch), *_frame_notes(sketch.framed_hosts)]
    if sketch.left_out_shingles:
        sentences.append(
            f"left out: {counted(sketch.left_out_shingles, 'shingle')} in more documents than"
            " pairs.max_document_frequency"
        )
    if sketch.lexicon:
        terms, words = sketch.lexicon.terms, sketch.lexicon.counted
        sentences.append(f"{terms:,} of {words:,} words of the collection are in the lexicon")
    return sentences


def _frame_notes(hosts: Sequence[FramedHost]) -> list[str]:
    """Return a note on pages whose frame decides."""
    named = ", ".join(f"{host.share:.0%} of {host.host}" for host in hosts[:NAMED_FILES])
    named += ", …" if len(hosts) > NAMED_FILES else ""
    text = (
        f"pages that share most of their words with the other pages of their host, such as menus: {named}; they can be"
        " pairs by that alone; input.text=main compares main texts"
    )
    return [text] if hosts else []


def _encoding_notes(sketch: SketchMetrics) -> list[str]:
    """Return notes on records whose bytes may not be the text that was read."""
    sentences = []
    if sketch.undecodable_records:
        sentences.append(
            f"{counted(sketch.undecodable_records, 'record', 'hold')} bytes that are no text:"
            f" {counted(sketch.undecodable_places, 'byte')} became U+FFFD; input.charset names another encoding"
        )
    if sketch.unread_records:
        parts = f", {counted(sketch.unread_parts, 'part')} such as attachments" if sketch.unread_parts else ""
        sentences.append(
            f"{counted(sketch.unread_records, 'document', 'hold')} what was not read:"
            f" {counted(sketch.unread_bytes, 'byte')}{parts}; `documents` says which"
        )
    if sketch.guessed_records:
        sentences.append(
            f"the encoding of {counted(sketch.guessed_records, 'record')} is a guess ({_names(sketch.guessed_files)}):"
            " nothing declares it, and a wrong one makes garbage; set input.charset"
        )
    if sketch.inside_records:
        sentences.append(
            f"in {counted(sketch.inside_records, 'text')} a page begins after other words"
            f" ({_names(sketch.inside_files)}): tags are removed, scripts stay; input.markup=html reads all as pages"
        )
    return sentences


def _names(files: list[CountedFile]) -> str:
    return ", ".join([*(file.path for file in files[:NAMED_FILES]), *(["…"] if len(files) > NAMED_FILES else [])])


def _unread_notes(sketch: SketchMetrics) -> list[str]:
    """Name the files that gave no document: a few one by one, more of them by kind, with what to do."""
    if len(sketch.unread_files) <= NAMED_FILES:
        named = ", ".join(f"{file.path} ({file.why.partition(';')[0]})" for file in sketch.unread_files)
        return [f"files that gave no document: {named}; each is in rejects/"]
    counts, first = Counter(file.why for file in sketch.unread_files), dict[str, str]()
    for file in sketch.unread_files:
        first.setdefault(file.why, file.path)
    kinds = [f"{count:,} {why.replace(';', ':', 1)} ({first[why]}{', …' if count > 1 else ''})"
             for why, count in counts.most_common(NAMED_KINDS)]  # fmt: skip
    kinds += [f"{len(counts) - NAMED_KINDS:,} more kinds"] if len(counts) > NAMED_KINDS else []
    whole = f"the first {len(sketch.unread_files)} files" if len(sketch.unread_files) == MOST_NAMED else "files"
    return [f"{whole} that gave no document: {'; '.join(kinds)}; each is in rejects/"]


def _document_notes(metrics: RunMetrics) -> list[str]:
    sentences = []
    if not metrics.rows["documents"]:
        sentences.append("no record became a document; `nddup inspect INPUT` shows how each file is read")
    if metrics.empty_sketches:
        sentences.append(
            f"{counted(metrics.empty_sketches, 'document')} without features to compare: in no pair; of equal contents"
            " one is kept"
        )
    if metrics.below_count:
        sentences.append(
            f"{counted(metrics.below_count, 'document', 'have')} fewer features than the count asks: kept, in no pair"
        )
    return sentences


def _keep_notes(keep: KeepMetrics, limited: int) -> list[str]:
    sentences = []
    if keep.forced_kept or keep.forced_removed or keep.forced_unknown:
        unknown = f"; ids that are no document: {keep.forced_unknown:,}" if keep.forced_unknown else ""
        unknown += f" ({name_some(keep.forced_unknown_ids, keep.forced_unknown)})" if keep.forced_unknown_ids else ""
        kept = counted(keep.forced_kept, "document")
        sentences.append(f"keep.force: {kept} kept, {keep.forced_removed:,} removed{unknown}")
    if keep.prefer_idle:
        sentences.append(f"keep.prefer matches no source of a document: {name_some(keep.prefer_idle)}")
    if keep.listed_idle:
        idle = counted(len(keep.listed_idle), "listed value")
        sentences.append(f"keep.policy: {idle} of no document: {name_some(keep.listed_idle)}")
    if keep.kept_pairs:
        sentences.append(
            f"both documents of {counted(keep.kept_pairs, 'pair')} are kept, as keep.force and keep.max_lost ask"
        )
    if limited:
        sentences.append(
            f"compared with few kept ones: {counted(limited, 'distinct text')} in components of more pairs than"
            " pairs.max_edges: more may be kept than keep.max_lost asks"
        )
    return sentences


def _ignored_notes(ignored: Sequence[str]) -> list[str]:
    names = ", ".join(ignored)
    text = f"tokens.ignore: texts that differ only in {names} are equal; `lost` does not count what they differ in"
    return [text] if ignored else []


def _short_notes(median: int, settings: Mapping[str, Any]) -> list[str]:
    shingle, pairs = settings["shingle"], settings["pairs"]
    length = shingle["length"]
    is_asked = pairs["measure"] == "resemblance" and pairs.get("confirm") != "edit" and shingle["unit"] == "word"
    if not 0 < median < SHORT or length == 1 or not is_asked or settings["sketch"]["kind"] not in SHINGLES_OF:
        return []
    share = share_of_changes_found(median, length, pairs["threshold"])
    if share == 1:
        return []
    text = (
        f"the median document has {counted(median, 'token')}: of pairs of such texts that differ in one word,"
        f" {share:.0%} are found with shingles of {length} words; --config short is made for them"
    )
    return [text]


def share_of_changes_found(tokens: int, length: int, threshold: float) -> float:
    """Return at which share of its places one changed word leaves a text of distinct words near its original.

    Example:
        >>> share_of_changes_found(10, 5, 0.7), round(share_of_changes_found(30, 5, 0.8), 2)
        (0.2, 0.13)
    """
    shingles = max(tokens - length + 1, 1)
    total = 0
    for place in range(tokens):
        changed = min(place, shingles - 1) - max(place - length + 1, 0) + 1
        total += shingles - changed >= threshold * (shingles + changed)
    return total / tokens


def _confirmed(metrics: RunMetrics) -> str:
    """Say how texts confirm the pairs, and what may be missed; or why sketches alone decide."""
    pairs, sketch, edits = metrics.settings["pairs"], metrics.settings["sketch"], metrics.stages.pairs.edits
    if edits is None:
        return say_estimated(pairs, sketch)
    if pairs["confirm"] == "edit":
        return (
            f", and edit at least {pairs['edit_threshold']}:\n{edits.confirmed:,} of {edits.compared:,} pairs of texts"
        )
    missed = say_missed(sketch["size"], Fraction(repr(pairs["threshold"])))
    return f", exact\nexpected missed: {missed}"


def _files(count: int) -> str:
    return counted(count, "file")


def _read_from(metrics: RunMetrics) -> str:
    """Say what was read; of a repository the files are known, and not their bytes, of a table neither."""
    files, size, new = metrics.stages.sketch.files, metrics.stages.sketch.bytes, metrics.stages.sketch.new_records
    if files:
        read = ", ".join([_files(files), *([spell_size(size)] if size else [])])
        return read if new is None else f"{new:,} of them new: {read}"
    is_onto = metrics.records and metrics.settings["output"].get("onto")
    return "by the run before, no new ones" if is_onto else "rows of a table"


def _of_clusters(clusters: int, metrics: RunMetrics) -> str:
    mode = MODES[metrics.settings["clusters"]["mode"]]
    if mode.means and clusters:
        return mode.means
    if not metrics.stages.clusters.components:
        return "of equal texts alone" if clusters else "no text is like another"
    return "in each, every two documents are alike" if mode.is_mined else ""


def _reasons(reasons: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {reason}" for reason, count in sorted(reasons.items()))


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%} of the documents" if whole else ""
