"""The families of a report as chunks: their clusters, and the graphs of their documents."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from nddup.report.content import Content
from nddup.report.data_documents import state_of
from nddup.report.families import Family

FAMILIES_EACH = 200


def family_chunks(shown: Content, families: Sequence[Family]) -> Iterator[tuple[str, Any]]:
    """Yield chunks of families, each with its component, clusters, number of distinct documents, nodes and edges.

    A node is (id, url, state, places of its clusters among those of the family). An edge is three numbers: the places
    of two nodes, and the resemblance in 1/1000 or -1.
    """
    described = {
        doc: (url, state_of(kept, reason))
        for doc, url, kept, reason in zip(
            *(shown.listed[name].to_pylist() for name in ("doc_id", "url", "kept", "reason")), strict=True
        )
    }
    members = shown.clusters["members"].to_pylist()
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
                    "edges": _edges(shown, bounds[place], bounds[place + 1]),
                }
                for place, family in enumerate(families[start : start + FAMILIES_EACH], start)
            ],
        )


def _nodes(
    family: Family, members: Sequence[Sequence[str]], described: dict[str, tuple[str | None, int]]
) -> list[list[Any]]:
    held: dict[str, list[int]] = {doc: [] for doc in family.drawn}
    for place, rank in enumerate(family.ranks):
        for doc in members[rank]:
            if doc in held:
                held[doc].append(place)
    return [[doc, *described.get(doc, (None, 0)), places] for doc, places in held.items()]


def _edges(shown: Content, low: int, high: int) -> list[int]:
    edges = shown.edges.slice(low, high - low)
    resemblance = np.nan_to_num(edges["resemblance"].to_numpy(zero_copy_only=False), nan=-0.001)
    scaled = np.floor(resemblance * 1_000 + 1e-6)
    columns = [edges["first"].to_numpy(), edges["second"].to_numpy(), scaled]
    return np.stack(columns, axis=1).astype(np.int64).ravel().tolist()
