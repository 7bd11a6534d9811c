"""Show which pairs the connected components of a list of pairs would invent. No Spark.

python scripts/chain_pairs.py LIST [NUMBER]

Prints, for the NUMBER worst components: their documents, the listed pairs among them, and the invented pairs.
"""

import gzip
import sys
from pathlib import Path

import numpy as np

from nddup.mining.pair_graph import label_components
from nddup.reading.reference_lists import guess_layout, read_lines


def main() -> int:
    """Print the table; return the exit status."""
    path, shown = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 5  # noqa: PLR2004
    data = path.read_bytes()
    lines = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode().splitlines()
    pairs = {tuple(sorted(ids)) for ids in read_lines(lines, guess_layout(lines)).members if ids and ids[0] != ids[1]}
    names, ends = np.unique(np.array(sorted(pairs)), return_inverse=True)
    edges = ends.reshape(-1, 2).astype(np.int32)
    labels = label_components(edges, nodes=len(names)).ordinals
    sizes, inside = np.bincount(labels), np.bincount(labels[edges[:, 0]])
    invented = sizes * (sizes - 1) // 2 - inside
    print(f"{len(pairs):,} pairs; {len(sizes):,} components, {np.count_nonzero(invented):,} of them no family")
    print(f"components say {len(pairs) + invented.sum():,} pairs: {invented.sum():,} invented")
    print(f"{'component':<12}{'documents':>10}{'pairs':>10}{'invented':>10}")
    for component in np.argsort(-invented, kind="stable")[:shown]:
        first = names[labels == component][0]
        print(f"{first:<12}{sizes[component]:>10,}{inside[component]:>10,}{invented[component]:>10,}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
