"""Hosts whose pages share most of their shingles: there the frame of a page decides, its menus, and not its text.

documents    sample          -> sketches of some pages of each large host
sketches     share_common    -> the share of each that is common on its host
hosts        list_framed  -> those with many pages of which most is common
"""

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.engines.engine import Engine
from nddup.ground.metrics import FramedHost
from nddup.settings.schema import Config

HOSTS = 32
"""Maximum number of hosts that are looked at: those with the most distinct texts."""

PAGES = 64
"""Pages of a host that are sampled, more or less."""

FEWEST = 8
"""Minimum number of pages of which something can be said."""

MOST = 0.5
"""Share of a page's shingles that half of the others have as well, from which its frame is more than its text."""

MANY = 0.1
"""Share of the pages of a host of which that is so, from which a run says so.

Of documentation with a menu in each page (LLVM, lxml) it was .13 to .6, of other sites 0."""

SAMPLE = """
    WITH pages AS (
        SELECT d.doc_key AS doc_key, lower(regexp_replace(split_part(d.url, '/', 3), '^.*@', '')) AS host
        FROM documents AS d
        WHERE d.url LIKE 'http%//%' AND d.doc_id = d.group
    ), hosts AS (
        SELECT host, count(*) AS pages FROM pages
        GROUP BY host HAVING count(*) >= {fewest} ORDER BY count(*) DESC, host LIMIT {hosts}
    )
    SELECT h.host AS host, h.pages AS pages, d.sketch AS sketch
    FROM hosts AS h JOIN pages AS p ON p.host = h.host JOIN documents AS d ON d.doc_key = p.doc_key
    WHERE h.pages <= {sample} OR (p.doc_key * 7919) % 1000003 < 1000003 * {sample} / h.pages
    ORDER BY h.host, p.doc_key
"""


def has_frames(config: Config) -> bool:
    """Whether the frame of a page reaches its sketch, and the sketch tells how much of the page it is."""
    return config.input.text == "all" and config.input.markup != "text" and config.sketch.kind == "min-s"


def list_framed(engine: Engine) -> list[FramedHost]:
    """Return the hosts with MANY pages of which most is common on the host, by name; none without addresses.

    Args:
        engine: with the table `documents`.

    Cost: one query, that groups the addresses of all documents; on Spark a shuffle of hosts, and the sample, at most
    some thousand sketches, comes to the driver.
    """
    rows = engine.sql(SAMPLE.format(fewest=FEWEST, hosts=HOSTS, sample=PAGES))
    framed = []
    for host in dict.fromkeys(rows["host"].to_pylist()):
        of_host = rows.filter(pc.equal(rows["host"], host))
        sketches = of_host["sketch"].combine_chunks()
        common = share_common(sketches.offsets.to_numpy(), sketches.values.to_numpy().view(np.uint64))
        share = float(np.mean(common >= MOST))
        if share >= MANY:
            framed.append(FramedHost(host=host, pages=of_host["pages"][0].as_py(), share=round(share, 2)))
    return framed


def share_common(
    offsets: NDArray[np.integer], ids: NDArray[np.uint64], fewest: int = FEWEST // 2
) -> NDArray[np.float64]:
    """Return, for each sketch, the share of its shingles that half of the other sketches have as well.

    A sketch of the least ids says nothing of ids above its last one, so each speaks for the ids up to that.

    Args:
        offsets: (n + 1,) where each sketch begins in `ids`.
        ids: ascending in each sketch.
        fewest: minimum number of sketches that have a common shingle.

    Returns:
        (n,) in [0, 1]; 0 for an empty sketch.

    Cost: a sort of the ids.
    """
    sizes = np.diff(offsets)
    named, place, having = np.unique(ids[offsets[0] : offsets[-1]], return_inverse=True, return_counts=True)
    last = np.sort(ids[offsets[1:][sizes > 0] - 1])
    reaching = len(last) - np.searchsorted(last, named)
    is_common = (having >= fewest) & (2 * (having - 1) >= reaching - 1)
    sums = np.concatenate([[0], np.cumsum(is_common[place])])
    shares: NDArray[np.float64] = np.diff(sums[offsets - offsets[0]]) / np.maximum(sizes, 1)
    return shares
