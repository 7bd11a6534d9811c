"""What a run found, in words: the same in the terminal and in the report."""

from typing import Any, NamedTuple


class Line(NamedTuple):
    """A number of the run, what it counts, and a remark."""

    name: str
    number: int
    note: str


def headline(metrics: dict[str, Any]) -> list[Line]:
    """The numbers that say what was read, rejected, found and kept.

    Args:
        metrics: as in `metrics.json`.
    """
    rows, stages = metrics["rows"], metrics["stages"]
    read, found, kept = stages["sketch"], stages["clusters"], stages["keep"]
    measure, threshold = metrics["settings"]["pairs"]["measure"], metrics["settings"]["pairs"]["threshold"]
    largest = f"{found['largest_component']:,}"
    return [
        Line("records read", metrics["records"], f"{_files(read['files'])}, {read['bytes'] / 1e6:.1f} MB"),
        Line("rejected", rows["rejects"], _reasons(read["rejected"])),
        Line(
            "documents",
            rows["documents"],
            f"{metrics['equal_sketches']:,} have the same text as another, as far as the sketch sees",
        ),
        Line("near-duplicate pairs", rows["pairs"], f"{measure} at least {threshold}"),
        Line(
            "clusters", rows["clusters"], f"in {found['components']:,} components, largest {largest} distinct sketches"
        ),
        Line("false in components", found["invented_pairs"], _invented(rows["false_components"], found)),
        Line("kept", kept["kept"], _share(kept["kept"], rows["documents"])),
        Line("removed", kept["removed"], "each has a kept near-duplicate"),
    ]


def notes(metrics: dict[str, Any]) -> list[str]:
    """Everything that was left out, cut or replaced, in words."""
    stages, found = metrics["stages"], _sketch_notes(metrics)
    if stages["pairs"]["cut_postings"]:
        found.append(
            f"{stages['pairs']['cut_features']:,} features were held by more than pairs.max_postings documents:"
            f" {stages['pairs']['cut_postings']:,} postings cut, pairs may be missing"
        )
    if stages["clusters"].get("pairs_below_support"):
        found.append(
            f"{stages['clusters']['pairs_below_support']:,} pairs share fewer features than clusters.support: in no"
            " cluster together"
        )
    if stages["clusters"]["covered_components"]:
        found.append(
            f"{stages['clusters']['covered_components']:,} components passed their budget: covered by"
            f" {stages['clusters']['covered_clusters']:,} maximal sets, every pair in one of them"
        )
    if stages["clusters"]["led_clusters"]:
        found.append(
            f"{stages['clusters']['led_clusters']:,} clusters of families too large for all their sets were made around"
            " kept documents: every document with a near-duplicate is in one"
        )
    if stages["clusters"]["led_components"]:
        found.append(
            f"in {stages['clusters']['led_components']:,} of these components pairs of two removed documents"
            " are not listed"
        )
    if beyond := stages.get("texts", {}).get("beyond_files"):
        found.append(
            f"{beyond:,} clusters chosen for the report lie in files beyond output.texts_read: it shows them without"
            " their texts"
        )
    return found


def _sketch_notes(metrics: dict[str, Any]) -> list[str]:
    """What did not become a sketch as it is, in words."""
    sketch, found = metrics["stages"]["sketch"], []
    skipped = len(sketch["skipped_files"])
    if skipped:
        found.append(f"{skipped} files skipped, listed in metrics.json")
    if sketch["undecodable_records"]:
        found.append(
            f"{sketch['undecodable_records']:,} records hold bytes that are no text:"
            f" {sketch['undecodable_places']:,} places became U+FFFD"
        )
    if sketch.get("left_out_shingles"):
        left_out = sketch["left_out_shingles"]
        found.append(f"{left_out:,} shingles in more documents than pairs.max_document_frequency were left out")
    if lexicon := sketch.get("lexicon"):
        found.append(f"{lexicon['terms']:,} of {lexicon['counted']:,} words of the collection are in the lexicon")
    if metrics["empty_sketches"]:
        found.append(f"{metrics['empty_sketches']:,} documents with an empty sketch are kept and paired with nothing")
    if metrics["below_count"]:
        found.append(f"{metrics['below_count']:,} documents have fewer features than the count asks: kept, in no pair")
    return found


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count:,} files"


def _invented(components: int, found: dict[str, Any]) -> str:
    if not components:
        return "every component is one family"
    most = "at most " if found["bounded_components"] else ""
    return f"{most}pairs that {components:,} components would invent, {found['most_invented']:,} in one"


def _reasons(reasons: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {reason}" for reason, count in sorted(reasons.items()))


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%} of the documents" if whole else ""
