"""The data of a report as plain values: `chunks` yields them, and the page loads them one by one.

check         what `nddup check` said, which writes it anew; null if it has not been run
summary       everything except clusters and documents (`summarise`)
clusters-N    columns of `CLUSTERS_EACH` clusters, for sorting, filtering and listing
members-N     documents and matrices of `MEMBERS_EACH` clusters (`_members`)
families-N    overlapping clusters of `FAMILIES_EACH` components, with their graphs (`family_chunks`)
documents-N   columns of `DOCUMENTS_EACH` documents, by id, so that the page finds one without reading all
nearest-N     the nearest documents of each of these (`document_chunks`)
stands-N      those that were removed for each of these
texts-N       texts of about `TEXTS_CHARACTERS`, with their titles (`find_titles`)
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.ground.metrics import RunMetrics, StageMetrics
from nddup.ground.shown import JsonValue, as_text, counted
from nddup.report.content import LENGTHS, AboutDocuments, Content, Family, find_nearest_sets
from nddup.report.for_review import decisive_of, is_resemblance_exact
from nddup.report.summary import headline, notes
from nddup.settings.schema import Config
from nddup.settings.stored import ignored_of
from nddup.sketching.respelling import NUMBER, respelt

DOCUMENTS_EACH = 5_000

STATES = ("kept", "exact", "equal", "near", "forced")
"""Outcomes of a document: kept, or the reason for its removal as a duplicate."""

StoredTexts = dict[str, tuple[int, int, str]]
"""doc_id -> chunk of its text, row in it, title (`titles`)."""

NOT_STORED = -1, -1, ""

SITE = r"^[A-Za-z][A-Za-z0-9+.-]*://(?:[^/?#@]*@)?(?P<site>[^/?#:@]+)"
FAMILIES_NAMED = 10
"""Families named on the first page."""

MOST_NAMED = 200
"""Maximum numbers of sources, and of sites, offered as choices; the page accepts any other that is typed."""

FAMILIES_EACH = 200

SIZES = (2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 100, 200, 500, 1_000, 10_000, 100_000)
"""Lower ends of the histogram of cluster sizes."""

SHORT = 20
"""Tokens below which a text is very short: such pages share a message or a form rather than content."""

OPEN = 1 << 62
"""Upper end that stands for no limit."""

TITLE = 160
"""Maximum number of characters of a title."""

LOOKED_AT = 2_000
"""Characters at the start of a text that are searched for a title."""

CLUSTERS_EACH = 10_000

MEMBERS_EACH = 500

TEXTS_CHARACTERS = 250_000

LABEL = 160
"""Maximum number of characters of the address or id that stands for a cluster in the list."""

Chunk = tuple[str, Any]

COMMON, COMMON_SHARE = 10, 0.02
"""A line is common if more than this number and more than this share of texts have it: a menu, the name of a site."""

ALL, LISTED_ONLY, UNKNOWN = 0, 1, 2
"""Pairs over which `least` is the lowest: all pairs of the cluster, only those that the run lists, or unknown."""


def _states(reason: pa.ChunkedArray, kept: pa.ChunkedArray | None = None) -> list[int]:
    """Return the places of outcomes in `STATES`; None: no document is kept."""
    places = pc.fill_null(pc.index_in(reason, pa.array(STATES)), 0)
    if kept is not None:
        places = pc.if_else(pc.fill_null(kept, fill_value=False), pa.scalar(0, pa.int32()), places)
    return places.to_pylist()  # type: ignore[no-any-return]


def document_chunks(documents: pa.Table, shown: AboutDocuments, stored: StoredTexts) -> Iterator[tuple[str, Any]]:
    """Yield for each chunk the columns of its documents, the nearest documents of each, and those removed for each.

    `nearest-N` has for each document flat triples: id, shared features, resemblance in 1/1000 or -1; it is null if the
    run has too many pairs to find them. `stands-N` has flat fours: id, place of the reason in `STATES`, resemblance in
    1/1000 and share lost in 1/10000, each -1 if unknown; a part of one is never 0.
    """
    memberships, removed, near, size = shown.memberships, shown.stands, shown.nearest, len(documents)
    in_all = np.zeros(size, np.int64)
    in_all[memberships["document"]] = memberships["clusters"]
    ranks = _by_document(size, memberships, memberships["rank"].to_pylist())
    stands = _by_document(
        size, removed, removed["other"].to_pylist(), _states(removed["reason"]), _thousandths(removed["resemblance"]),
        _lost(removed["lost"]),
    )  # fmt: skip
    nearest = None
    if near is not None:
        numbers = near["overlap"].to_pylist(), _thousandths(near["resemblance"])
        nearest = _by_document(size, near, near["other"].to_pylist(), *numbers)
    for number, start in enumerate(range(0, size, DOCUMENTS_EACH)):
        part = documents.slice(start, DOCUMENTS_EACH)
        rows, places = part.to_pydict(), slice(start, start + DOCUMENTS_EACH)
        texts = [stored.get(doc, NOT_STORED) for doc in rows["doc_id"]]
        yield (
            f"documents-{number}",
            {
                "id": rows["doc_id"],
                **{name: rows[name] for name in ("url", "record", "duplicate_of", "stands", "longest")},
                **_numbered(rows["source"]),
                "tokens": rows["n_tokens"],
                "features": rows["n_features"],
                "pairs": rows["pairs"],
                "like": _thousandths(part["resemblance"]),
                "lost": _lost(part["lost"]),
                "leader": rows["leader"],
                "state": _states(part["reason"], part["kept"]),
                "title": [title for _, _, title in texts],
                "text": [[chunk, place] for chunk, place, _ in texts],
                "clusters": ranks[places],
                "in": in_all[places].tolist(),
                **{name: rows[name] for name in ("parent", "unread_bytes", "unread_parts")},
            },
        )
        yield f"nearest-{number}", None if nearest is None else nearest[places]
        yield f"stands-{number}", stands[places]


def largest_families(documents: pa.Table, stored: StoredTexts) -> list[list[Any]]:
    """Return the kept documents that stand for most others: id, address or null, title, number of others."""
    columns = documents.select(["doc_id", "url", "stands"]).filter(pc.greater(documents["stands"], 0))
    rows = columns.sort_by([("stands", "descending"), ("doc_id", "ascending")]).slice(0, FAMILIES_NAMED).to_pylist()
    return [[row["doc_id"], row["url"], stored.get(row["doc_id"], (0, 0, ""))[2], row["stands"]] for row in rows]


def named(documents: pa.Table) -> dict[str, list[Any]]:
    """Return the sources and sites with most documents, (name, documents), and the first id of each chunk."""
    sites = pc.struct_field(pc.extract_regex(documents["url"], SITE), "site")
    return {
        "sources": _most(documents["source"]),
        "sites": _most(pc.utf8_lower(sites)),
        "firsts": documents["doc_id"].to_pylist()[::DOCUMENTS_EACH],
    }


def _most(values: pa.ChunkedArray) -> list[list[Any]]:
    counted = [(row["values"], row["counts"]) for row in pc.value_counts(values).to_pylist() if row["values"]]
    return [list(one) for one in sorted(counted, key=lambda item: (-item[1], item[0]))[:MOST_NAMED]]


def _numbered(sources: list[str]) -> dict[str, list[Any]]:
    """Return each source once, and the place of each document's source among them."""
    places: dict[str, int] = {}
    source = [places.setdefault(one, len(places)) for one in sources]
    return {"sources": list(places), "source": source}


def _by_document(size: int, rows: pa.Table, *columns: list[Any]) -> list[list[Any]]:
    width = len(columns)
    values: list[Any] = [None] * (width * len(rows))
    for at, column in enumerate(columns):
        values[at::width] = column
    bounds = (width * np.searchsorted(rows["document"].to_numpy(), np.arange(size + 1))).tolist()
    return [values[low:high] for low, high in pairwise(bounds)]


def _in_thousandths(resemblance: pa.ChunkedArray | NDArray[np.float64]) -> NDArray[np.int64]:
    return np.nan_to_num(np.floor(np.asarray(resemblance) * 1_000 + 1e-6), nan=-1).astype(np.int64)


def _thousandths(resemblance: pa.ChunkedArray | NDArray[np.float64]) -> list[int]:
    return _in_thousandths(resemblance).tolist()  # type: ignore[no-any-return]


def _lost(share: pa.ChunkedArray) -> list[int]:
    """Return shares in 1/10000, rounded up, so that 0 means that nothing is lost; -1 where there is none."""
    scaled = np.ceil(np.asarray(share) * 10_000 - 1e-9)
    return np.nan_to_num(scaled, nan=-1).astype(np.int64).tolist()  # type: ignore[no-any-return]


def family_chunks(shown: Content, members: Sequence[Sequence[int]]) -> Iterator[tuple[str, Any]]:
    """Yield chunks of families, each with its component, clusters, number of distinct documents, nodes and edges.

    A node is (id, url, state, places of its clusters among those of the family). An edge is three numbers: the places
    of two nodes, and the resemblance in 1/1000 or -1.
    """
    documents = shown.documents
    states = _states(documents["reason"], documents["kept"])
    described = list(zip(documents["doc_id"].to_pylist(), documents["url"].to_pylist(), states, strict=True))
    families = shown.families
    bounds = np.searchsorted(shown.edges["part"].to_numpy(), np.arange(len(families) + 1)).tolist()
    for number, start in enumerate(range(0, len(families), FAMILIES_EACH)):
        yield (
            f"families-{number}",
            [
                {
                    "component": family.component,
                    "ranks": list(family.ranks),
                    "documents": family.documents,
                    "nodes": _nodes(family, members, described),
                    "edges": _flat_edges(shown.edges.slice(bounds[place], bounds[place + 1] - bounds[place])),
                }
                for place, family in enumerate(families[start : start + FAMILIES_EACH], start)
            ],
        )


def _nodes(
    family: Family, members: Sequence[Sequence[int]], described: Sequence[tuple[str, str | None, int]]
) -> list[list[Any]]:
    places_of: dict[int, list[int]] = {document: [] for document in family.drawn}
    for place, rank in enumerate(family.ranks):
        for document in members[rank]:
            if document in places_of:
                places_of[document].append(place)
    return [[*described[document], places] for document, places in places_of.items()]


def summarise(
    shown: Content, counts: Mapping[str, Mapping[str, int]], *, longest: Sequence[int], largest: Sequence[Any] = ()
) -> dict[str, Any]:
    """Return the chunk `summary`.

    Args:
        counts: sizes and numbers of the chunks, by what they hold.
        longest: length of the longest document of each cluster shown, in tokens.
        largest: as from `largest_families`.
    """
    metrics, documents = shown.metrics, shown.documents
    settings, sketch = metrics.settings, metrics.stages.sketch
    return {
        "run": shown.path,
        "headline": [list(line) for line in headline(metrics)],
        "notes": notes(metrics),
        "funnel": _funnel(metrics),
        "histograms": {
            "sizes": _bucketed(shown.sizes),
            "resemblance": _percents(shown.resemblances),
            "lengths": {
                "labels": [_span(low, high) for low, high in pairwise(_ends(LENGTHS))],
                "counts": [count for _, count in shown.lengths],
            },
        },
        "rejects": {
            "reasons": sorted(sketch.rejected.items(), key=lambda item: (-item[1], item[0])),
            "first": [[row[name] for name in ("source", "record", "doc_id", "reason", "detail", "excerpt")]
                      for row in shown.rejects],
        },
        "skipped": [[file.path, file.why] for file in sketch.skipped_files],
        "framed": [[host.host, host.share] for host in sketch.framed_hosts],
        "settings": list(_settings(settings)),
        "versions": sorted(metrics.versions.items()),
        "stages": [_stage(name, stage) for name, stage in metrics.stages.by_name().items()],
        "evaluation": shown.evaluation,
        "losses": {**shown.losses, "ignored": list(ignored_of(settings))},
        "risky": [dict(row) for row in shown.risky],
        "borderline": decisive_of(settings) is not None,
        "invented": metrics.stages.clusters.invented_pairs,
        "news": shown.news,
        "components": shown.components,
        "disagreements": shown.disagreements,
        "shingle": compared_by(settings),
        "rule": {
            **{name: settings["pairs"][name] for name in ("measure", "threshold")},
            "exact": is_resemblance_exact(settings),
        },
        "mode": settings["clusters"]["mode"],
        "policy": settings["keep"]["policy"],
        "short": _short(shown, longest, settings["input"].get("min_tokens", 0)),
        "texts": {"documents": len(shown.texts), **counts["texts"]},
        "families": counts["families"],
        "documents": {
            "shown": len(documents),
            "all": metrics.rows["documents"],
            **counts["documents"],
            **named(documents),
            "largest": list(largest),
            "families": shown.about().families,
        },
        "clusters": {
            "shown": len(shown.clusters),
            "all": metrics.rows["clusters"],
            "listed_each": shown.listed_each,
            "matrix_each": shown.matrix_each,
            **counts["clusters"],
        },
    }  # fmt: skip


def _funnel(metrics: RunMetrics) -> list[tuple[str, int, str]]:
    rows, kept = metrics.rows, metrics.stages.keep.kept
    distinct = rows["documents"] - metrics.equal_sketches
    return [
        ("records read", metrics.records, ""),
        ("documents", rows["documents"], f"{counted(rows['rejects'], 'record')} rejected"),
        ("different texts", distinct, headline(metrics)[2].note),
        ("kept", kept, f"{rows['documents'] - kept:,} are near-duplicates of a kept one"),
    ]


def _settings(settings: Mapping[str, Mapping[str, Any]]) -> Iterator[list[Any]]:
    defaults = Config().model_dump(mode="json")
    for section, values in settings.items():
        for key, value in values.items():
            name = f"{section}.{key}" if section != "spark" else key
            default = defaults.get(section, {}).get(key, value)
            yield [name, _shown(value)] if value == default else [name, _shown(value), _shown(default)]


def _shown(value: JsonValue) -> str | None:
    """Return a value as it is written in a settings file; None if unset."""
    return None if value is None else as_text(value)


def _short(shown: Content, longest: Sequence[int], least: int) -> dict[str, Any]:
    """Count the clusters shown whose documents are all very short; with the value of `input.min_tokens`."""
    sizes = [size for size, tokens in zip(shown.clusters["size"].to_pylist(), longest, strict=True) if tokens < SHORT]
    return {"tokens": SHORT, "clusters": len(sizes), "largest": max(sizes, default=0), "min_tokens": least}


def compared_by(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the shingles for comparing two texts on the page: the run's, or 3 words if the run's are of characters.

    Where tokens ignore anything, also what becomes of characters, `respelt`, and of numbers, `number`.
    """
    shingle, ignore = settings["shingle"], ignored_of(settings)
    is_word = shingle["unit"] == "word"
    lengths = {"length": shingle["length"] if is_word else 3, "offset": shingle["offset"] if is_word else 1}
    if not ignore:
        return lengths
    characters = {chr(code): chr(other) if other else "" for code, other in respelt(ignore).items()}
    return {**lengths, "respelt": characters, "number": NUMBER if "numbers" in ignore else None}


def _stage(name: str, stage: StageMetrics) -> dict[str, Any]:
    return {"name": name, "seconds": stage.seconds, "shuffle": stage.shuffle_bytes,
            "rows_in": sorted(stage.rows_in.items()), "rows_out": sorted(stage.rows_out.items())}  # fmt: skip


def _bucketed(sizes: list[tuple[int, int]]) -> dict[str, list[Any]]:
    largest = max((size for size, _ in sizes), default=0)
    edges = [low for low in SIZES if low <= largest]
    counts = [0] * len(edges)
    for size, count in sizes:
        counts[int(np.searchsorted(edges, size, side="right")) - 1] += count
    return {"labels": [_span(low, high) for low, high in pairwise(_ends(edges))], "counts": counts}


def _percents(resemblances: list[tuple[int | None, int]]) -> dict[str, Any]:
    """Count pairs by whole percent of resemblance, from the lowest that occurs; `unknown` counts those without one."""
    known = {percent: count for percent, count in resemblances if percent is not None}
    percents = range(min(known, default=0), 101) if known else range(0)
    unknown = sum(count for percent, count in resemblances if percent is None)
    return {"labels": list(percents), "counts": [known.get(percent, 0) for percent in percents], "unknown": unknown}


def _ends(lows: Sequence[int]) -> list[int]:
    return [*lows, OPEN]


def _span(low: int, high: int) -> str:
    if high == OPEN:
        return f"≥ {low:,}"
    return f"{low:,}" if high == low + 1 else f"{low:,}–{high - 1:,}"


def find_titles(texts: Sequence[str]) -> list[str]:
    r"""Return for each text its lines from the first uncommon one on, joined; from its first line if all are common.

    Lines that many texts share are left out, such as the menu of a site.

    Returns:
        A title for each text, at most `TITLE` characters long; empty for a text of white space.

    Example:
        >>> texts = [f"Home Search\nPage {number}" for number in range(20)]
        >>> find_titles([*texts, "Home  Search", "\n\nA\n \nB"])[19:]
        ['Page 19', 'Home Search', 'A B']
    """
    lines = [[" ".join(words) for line in text[:LOOKED_AT].split("\n") if (words := line.split())] for text in texts]
    counts = Counter(line for of_one in lines for line in set(of_one))
    common = max(COMMON, COMMON_SHARE * len(texts))
    return [" ".join(_own(of_one, counts, common) or of_one)[:TITLE] for of_one in lines]


def _own(lines: Sequence[str], counts: Mapping[str, int], common: float) -> Sequence[str]:
    first = next((at for at, line in enumerate(lines) if counts[line] <= common), len(lines))
    return lines[first:]


def chunks(shown: Content) -> Iterator[Chunk]:
    """Yield all chunks of a report, those about the documents last: (name, JSON value)."""
    stored, texts = _texts(shown.texts)
    cells = _bounds(shown.cells, len(shown.clusters))
    listed = _bounds(shown.listed, len(shown.clusters))
    documents = shown.listed["document"].to_pylist()
    members = [documents[low:high] for low, high in pairwise(listed)]
    columns = _columns(shown, listed, cells, stored) | _family_columns(shown.families, members)
    counts = {
        "clusters": {"each": CLUSTERS_EACH, "members_each": MEMBERS_EACH},
        "documents": {"each": DOCUMENTS_EACH},
        "families": {"each": FAMILIES_EACH, "shown": len(shown.families)},
        "texts": {"chunks": len(texts)},
    }
    for number, start in enumerate(range(0, len(shown.clusters), CLUSTERS_EACH)):
        yield f"clusters-{number}", {name: column[start : start + CLUSTERS_EACH] for name, column in columns.items()}
    yield from _members(shown, members)
    yield from family_chunks(shown, members)
    for number, rows in enumerate(texts):
        yield f"texts-{number}", rows
    yield from document_chunks(shown.documents, shown.about(), stored)
    largest = largest_families(shown.documents, stored)
    yield "check", shown.check
    yield "summary", summarise(shown, counts, longest=columns["longest"], largest=largest)


def _bounds(table: pa.Table, clusters: int) -> list[int]:
    return np.searchsorted(table["rank"].to_numpy(), np.arange(clusters + 1)).tolist()  # type: ignore[no-any-return]


def _texts(texts: pa.Table) -> tuple[StoredTexts, list[list[list[str]]]]:
    """Return chunk, row and title of each text by document, and the chunks of texts."""
    stored: StoredTexts = {}
    pieces: list[list[list[str]]] = []
    characters = TEXTS_CHARACTERS
    titles = find_titles(texts["text"].to_pylist())
    for doc, text, title in zip(texts["doc_id"].to_pylist(), texts["text"].to_pylist(), titles, strict=True):
        if characters >= TEXTS_CHARACTERS:
            pieces.append([])
            characters = 0
        stored[doc] = (len(pieces) - 1, len(pieces[-1]), title)
        pieces[-1].append([doc, text])
        characters += len(text)
    return stored, pieces


def _columns(shown: Content, listed: list[int], cells: list[int], stored: StoredTexts) -> dict[str, list[Any]]:
    """Return the columns of the list of clusters.

    `least` is the lowest resemblance in the cluster in 1/1000, -1 if none is known, and `least_of` says over which
    pairs. `kept` counts the listed documents that are kept, `texts` those with a stored text. `longest` is the length
    of the longest listed document in tokens, `title` the title of the first listed document with a text.
    """
    clusters, documents = shown.clusters, shown.documents
    ids, urls = documents["doc_id"].to_pylist(), documents["url"].to_pylist()
    rank, document = shown.listed["rank"].to_numpy(), shown.listed["document"].to_numpy()
    filled = np.flatnonzero(np.diff(listed))
    longest = np.zeros(len(clusters), np.int64)
    if len(filled):
        longest[filled] = np.maximum.reduceat(documents["n_tokens"].to_numpy()[document], np.array(listed)[filled])

    has_text = np.array([doc in stored for doc in ids], np.bool_)[document]
    ranks, firsts = np.unique(rank[has_text], return_index=True)
    titles = [""] * len(clusters)
    for at, row in zip(ranks.tolist(), document[has_text][firsts].tolist(), strict=True):
        titles[at] = stored[ids[row]][2]
    labels = [""] * len(clusters)
    for at, row in zip(filled.tolist(), document[np.array(listed)[filled]].tolist(), strict=True):
        labels[at] = (urls[row] or ids[row])[:LABEL]
    least, least_of = _weakest(shown, cells)
    return {
        "id": clusters["cluster_id"].to_pylist(),
        "size": clusters["size"].to_pylist(),
        "support": clusters["support"].to_pylist(),
        "coverage": clusters["coverage"].to_pylist(),
        "least": least,
        "least_of": least_of,
        "label": labels,
        "title": titles,
        "longest": longest.tolist(),
        "kept": _count(np.asarray(documents["kept"])[document], listed).tolist(),
        "texts": _count(has_text, listed).tolist(),
    }


def _count(flags: NDArray[np.bool_], bounds: Sequence[int]) -> NDArray[np.int64]:
    return np.diff(np.concatenate([[0], np.cumsum(flags, dtype=np.int64)])[bounds])


def _weakest(shown: Content, cells: list[int]) -> tuple[list[int], list[int]]:
    """Return for each cluster the lowest resemblance in 1/1000, or -1, and over which pairs it is the lowest."""
    size, resemblance = shown.clusters["size"].to_numpy().astype(np.int64), np.asarray(shown.cells["resemblance"])
    pairs, estimated = np.diff(cells), _count(~np.isnan(resemblance), cells)
    least, has_pairs = np.full(len(size), np.nan), np.flatnonzero(pairs)
    if len(has_pairs):
        least[has_pairs] = np.fmin.reduceat(resemblance[: cells[-1]], np.array(cells)[has_pairs])
    least[size > shown.matrix_each] = np.nan

    larger = shown.weakest["rank"].to_numpy()
    for values, name in ((pairs, "pairs"), (estimated, "estimated"), (least, "least")):
        values[larger] = np.asarray(shown.weakest[name])
    which = np.where((pairs == estimated) & (pairs == size * (size - 1) // 2), ALL, LISTED_ONLY)
    which[np.isnan(least)] = UNKNOWN
    return _thousandths(least), which.tolist()


def _family_columns(families: Sequence[Family], members: Sequence[Sequence[int]]) -> dict[str, list[int]]:
    """Return each cluster's family, and the earlier cluster of the family that shares most documents, with the number.

    Without such a family or cluster -1, and `shared` is 0.
    """
    size = len(members)
    family, near, shared = [-1] * size, [-1] * size, [0] * size
    for place, one in enumerate(families):
        for rank in one.ranks:
            family[rank] = place
    for rank, (other, count) in find_nearest_sets(families, members).items():
        near[rank], shared[rank] = other, count
    return {"family": family, "near": near, "shared": shared}


def _members(shown: Content, members: Sequence[Sequence[int]]) -> Iterator[Chunk]:
    """Yield each cluster's documents, by their places in `documents-N`, and the cells of its matrix.

    The cells are those above the diagonal, row by row: the shared features and the resemblance in 1/1000 or -1 of a
    near-duplicate pair, and -1 alone for two other documents.
    """
    sizes = np.minimum([len(documents) for documents in members], shown.matrix_each).astype(np.int64)
    ends = np.append(0, np.cumsum(sizes * (sizes - 1) // 2))
    rank, first, second = (shown.cells[name].to_numpy().astype(np.int64) for name in ("rank", "first", "second"))
    at = ends[rank] + first * (2 * sizes[rank] - first - 1) // 2 + second - first - 1
    numbers, is_given = np.full((ends[-1], 2), -1), np.full((ends[-1], 2), [True, False])
    numbers[at] = np.stack([shown.cells["overlap"].to_numpy(), _in_thousandths(shown.cells["resemblance"])], axis=1)
    is_given[at] = True
    flat = numbers[is_given].tolist()
    bounds = np.append(0, np.cumsum(is_given.sum(axis=1)))[ends].tolist()

    rows = [[documents, flat[low:high]] for documents, (low, high) in zip(members, pairwise(bounds), strict=True)]
    for number, start in enumerate(range(0, len(rows), MEMBERS_EACH)):
        yield f"members-{number}", rows[start : start + MEMBERS_EACH]


def _flat_edges(edges: pa.Table) -> list[int]:
    """Return for each edge first, second, and the resemblance in 1/1000 or -1."""
    columns = [edges[name].to_numpy() for name in ("first", "second")]
    return np.stack([*columns, _in_thousandths(edges["resemblance"])], axis=1).ravel().tolist()
