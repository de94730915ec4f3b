"""What an engine can compute on, found without importing torch."""

import os
import subprocess
from functools import lru_cache
from pathlib import Path

_ANSWER_LIMIT_S = 3.0


@lru_cache(maxsize=1)
def nvidia_gpus() -> tuple[str, ...]:
    """Return the names of the NVIDIA GPUs, as `nvidia-smi` gives them; () where it does not."""
    command = ("nvidia-smi", "--query-gpu=name", "--format=csv,noheader")
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, timeout=_ANSWER_LIMIT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(line.strip() for line in answer.stdout.splitlines() if line.strip())


def usable_cpus() -> list[int]:
    """Return the CPUs that this process, and so its engine, may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def numa_nodes() -> int:
    """Return how many NUMA nodes this machine has, at least 1."""
    return max(1, len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))))
