"""Groups by datatrove: `python datatrove_groups.py TEXTS OUTPUT CORES`, with the interpreter of its environment.

The four steps of its MinHash example: signatures, buckets, clusters, and the kept documents.
"""

import json
import struct
import sys
from collections import defaultdict
from pathlib import Path

from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.dedup import MinhashDedupSignature
from datatrove.pipeline.dedup.minhash import (
    MinhashConfig,
    MinhashDedupBuckets,
    MinhashDedupCluster,
    MinhashDedupFilter,
)
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers import JsonlWriter
from texts import BANDS, LENGTH, ROWS, write_groups


def split(texts: Path, folder: Path, parts: int) -> list[list[str]]:
    """Write every `parts`-th line to a file of its own, one for each task; return the ids in each file."""
    folder.mkdir(parents=True)
    ids: list[list[str]] = [[] for _ in range(parts)]
    files = [(folder / f"{part}.jsonl").open("w", encoding="utf-8") for part in range(parts)]
    with texts.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            files[number % parts].write(line)
            ids[number % parts].append(json.loads(line)["id"])
    for file in files:
        file.close()
    return ids


def main() -> None:
    """Run the steps, then write the groups of two or more documents."""
    texts, output, cores = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    folder = Path(f"{output}.folder").absolute()
    ids = split(texts, folder / "texts", cores)
    config = MinhashConfig(n_grams=LENGTH, num_buckets=BANDS, hashes_per_bucket=ROWS)
    at = {name: str(folder / name) for name in ("texts", "signatures", "buckets", "groups", "kept")}

    sign = [JsonlReader(at["texts"]), MinhashDedupSignature(at["signatures"], config)]
    join = [MinhashDedupBuckets(at["signatures"], at["buckets"], config=config)]
    group = [MinhashDedupCluster(at["buckets"], at["groups"], config=config, save_cluster_id=True)]
    keep = [JsonlReader(at["texts"]), MinhashDedupFilter(at["groups"]), JsonlWriter(at["kept"], compression=None)]
    for name, steps, tasks in (
        ("sign", sign, cores),
        ("join", join, BANDS),
        ("group", group, 1),
        ("keep", keep, cores),
    ):
        logs = str(folder / f"logs-{name}")
        LocalPipelineExecutor(steps, tasks=tasks, workers=min(cores, tasks), logging_dir=logs).run()

    groups: dict[int, list[str]] = defaultdict(list)
    for part, names in enumerate(ids):
        path = Path(at["groups"], f"{part:06d}.clusters")
        for place, number in struct.iter_unpack("<2I", path.read_bytes() if path.exists() else b""):
            groups[number].append(names[place])
    write_groups(output, groups.values())


if __name__ == "__main__":
    main()
