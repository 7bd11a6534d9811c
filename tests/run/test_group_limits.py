"""The memory that control groups allow: of the process's own group and of every group above it."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from nddup.engines.choose import group_limits, machine_memory

V2 = "sys/fs/cgroup"
V1 = "sys/fs/cgroup/memory"


def make(system: Path, group: str, limits: Mapping[str, str]) -> Path:
    """Write `/proc/self/cgroup` and the limits of groups below another root; return the root."""
    for name, text in {"proc/self/cgroup": group, **limits}.items():
        (system / name).parent.mkdir(parents=True, exist_ok=True)
        (system / name).write_text(text)
    return system


@pytest.mark.parametrize(
    ("group", "limits", "expected"),
    [
        ("0::/\n", {f"{V2}/memory.max": "4096\n"}, [4096]),
        ("0::/a/b\n", {f"{V2}/a/b/memory.max": "max\n", f"{V2}/a/memory.max": "2048\n"}, [2048]),
        ("0::/a/b\n", {f"{V2}/a/b/memory.max": "1024\n", f"{V2}/a/memory.max": "2048\n"}, [1024, 2048]),
        ("0::/kubepods/of/the/host\n", {f"{V2}/memory.max": "512\n"}, [512]),
        ("4:cpu,memory:/job/7\n0::/x\n", {f"{V1}/job/memory.limit_in_bytes": "256\n"}, [256]),
        ("4:memory:/job\n", {f"{V1}/job/memory.limit_in_bytes": "64\n", f"{V2}/unified/memory.max": "32"}, [32, 64]),
        ("4:cpu:/job\n", {f"{V1}/job/memory.limit_in_bytes": "64\n"}, []),
        ("0::/a:b\nnonsense\n", {f"{V2}/a:b/memory.max": "128\n"}, [128]),
    ],
)
def test_limits_of_all_groups_above_count(
    group: str, limits: Mapping[str, str], expected: list[int], tmp_path: Path
) -> None:
    """Both versions, nested groups, a group without a limit, and a container that sees only its own root."""
    assert sorted(set(group_limits(make(tmp_path, group, limits)))) == expected


def test_a_machine_without_groups_has_its_own_memory(tmp_path: Path) -> None:
    """Where nothing is mounted, no limit is found, and the memory of this machine is a positive number."""
    assert group_limits(tmp_path) == []
    assert machine_memory() > 0
