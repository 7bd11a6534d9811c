"""Groups by text-dedup: `python text_dedup_groups.py TEXTS OUTPUT CORES`, with the interpreter of its environment.

Its own command, `python -m text_dedup.minhash`, writes its groups as a pickled table of parents.
"""

import pickle
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from texts import BANDS, LENGTH, ROWS, SLOTS, write_groups


def main() -> None:
    """Run the command, then write the groups of two or more documents."""
    texts, output, cores = sys.argv[1:]
    folder = Path(f"{output}.folder")
    options = {
        "path": "json", "data_files": texts, "split": "train", "column": "text", "idx_column": "id",
        "cache_dir": str(folder / "cache"), "output": str(folder / "kept"), "num_proc": cores,
        "ngram": LENGTH, "num_perm": SLOTS, "b": BANDS, "r": ROWS,
    }  # fmt: skip
    arguments = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    subprocess.run([sys.executable, "-m", "text_dedup.minhash", *arguments, "--debug"], check=True)

    parents = pickle.loads((folder / "kept" / "uf.pkl").read_bytes())  # noqa: S301 - written just now
    groups: dict[str, list[str]] = defaultdict(list)
    for doc_id in list(parents.parent):
        groups[parents.find(doc_id)].append(doc_id)
    write_groups(output, groups.values())


if __name__ == "__main__":
    main()
