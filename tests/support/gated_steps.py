"""Steps that wait at a gate, on any store, and tell on the local disk which processes work for them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from marin_assets import THIS_OUTPUT_PATH
from marin_resources.ray_tpu.shards.map_shards import map_shards
from marin_resources.storage.files import StoredFile, write_bytes
from marin_resources.storage.paths import join


@dataclass(frozen=True, kw_only=True)
class GatedConfig:
    told: str
    """A local folder: a file named after each process that works. While "gate" is in it, they wait."""
    output_path: str = THIS_OUTPUT_PATH


@dataclass(frozen=True, kw_only=True)
class GatedShard:
    number: int
    told: str
    outputs: tuple[str, ...] = ()
    inputs: tuple[StoredFile, ...] = ()


def wait_with_a_child(config: GatedConfig) -> dict[str, int]:
    """Half of the data, then the gate, then the other half. A child process would go on for ever."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    write_bytes(join(config.output_path, "half.txt"), b"half")
    tell(config.told, child.pid)
    wait_at_gate(config.told)
    child.kill()
    child.wait()
    write_bytes(join(config.output_path, "whole.txt"), b"whole")
    return {"files": 2}


def hold_the_interpreter(config: GatedConfig) -> None:
    """A regular expression that takes for ever, during which no thread of this process runs Python."""
    tell(config.told, os.getpid())
    re.match(r"(a+)+$", "a" * 60 + "b")


def wait_in_two_shards(config: GatedConfig) -> dict[str, int]:
    tell(config.told, os.getpid())
    paths = [join(config.output_path, f"part-{number}.txt") for number in range(2)]
    shards = [GatedShard(number=number, told=config.told, outputs=(path,)) for number, path in enumerate(paths)]
    return dict(map_shards(wait_in_shard, shards, output_path=config.output_path))


def wait_in_shard(shard: GatedShard) -> dict[str, int]:
    wait_at_gate(shard.told)
    write_bytes(shard.outputs[0], b"part", replace=False)
    return {"parts": 1}


def wait_at_gate(told: str) -> None:
    tell(told, os.getpid())
    while os.path.exists(f"{told}/gate"):
        time.sleep(0.02)


def tell(told: str, pid: int) -> None:
    Path(told, str(pid)).touch()


def told_of(told: Path, processes: int) -> Callable[[], list[int] | None]:
    """A condition: so many processes have told that they work; their ids."""

    def look() -> list[int] | None:
        pids = [int(path.name) for path in told.iterdir() if path.name.isdigit()]
        return pids if len(pids) == processes else None

    return look


@dataclass(frozen=True, kw_only=True)
class BigConfig:
    megabytes: int
    output_path: str = THIS_OUTPUT_PATH


def write_a_big_file(config: BigConfig) -> dict[str, int]:
    """One that goes to a bucket in several requests."""
    data = bytes(range(256)) * 4096 * config.megabytes
    write_bytes(join(config.output_path, "big.bin"), data)
    return {"bytes": len(data)}
