"""Functions of shards that write to the local disk what they do."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from marin_resources.hardware.resources import cpu, tpu
from marin_resources.ray_tpu.shards.map_shards import map_shards
from marin_resources.storage.files import StoredFile

MEETING_TIMEOUT_S = 30


@dataclass(frozen=True, kw_only=True)
class MarkedShard:
    number: int
    told: str
    """A local folder with a file named after each finished shard."""
    meets: int = 0
    """How many shards must run at once."""
    variable: str = ""
    bad: int = -1
    inputs: tuple[StoredFile, ...] = ()


def mark(shard: MarkedShard) -> dict[str, int]:
    tell(shard, str(os.getpid()))
    return {"shards": 1}


def fail(shard: MarkedShard) -> dict[str, int]:
    """Fail in the bad shard after the others have started."""
    _meet(shard)
    if shard.number != shard.bad:
        return {"shards": 1}
    raise ValueError(f"{shard.number} is bad")


def die_once(shard: MarkedShard) -> dict[str, int]:
    died = Path(shard.told, f"died-{shard.number}")
    if not died.exists():
        died.touch()
        _meet(shard)
        os._exit(9)
    return mark(shard)


def meet(shard: MarkedShard) -> dict[str, int]:
    """Wait for the other shards that run at the same time."""
    _meet(shard)
    return mark(shard)


def wait(shard: MarkedShard) -> dict[str, int]:
    """For ever."""
    mark(shard)
    while True:
        time.sleep(60)


def tell_variable(shard: MarkedShard) -> dict[str, int]:
    value = os.environ[shard.variable]
    print(f"shard {shard.number} has {value}")
    tell(shard, value)
    return {"shards": 1}


def tell_python(shard: MarkedShard) -> dict[str, int]:
    tell(shard, "\n".join([sys.executable, *sys.path]))
    return {"shards": 1}


def say(shard: MarkedShard) -> dict[str, int]:
    print(f"shard {shard.number} says something", flush=True)
    return mark(shard)


def tell(shard: MarkedShard, text: str) -> None:
    Path(shard.told, str(shard.number)).write_text(text)


def numbers_told(told: Path) -> list[int]:
    """Return the numbers of the finished shards."""
    return sorted(int(path.name) for path in told.iterdir() if path.name.isdigit())


def map_marked(config: dict[str, Any]) -> dict[str, Any]:
    """A step: the function of this name over so many shards. With `gate`, it first waits until that file is gone."""
    Path(config["told"], f"job-{os.getpid()}").touch()
    while os.path.exists(config.get("gate", "")):
        time.sleep(0.02)
    how = {name: config[name] for name in ("meets", "variable") if name in config}
    shards = [MarkedShard(number=number, told=config["told"], **how) for number in range(config["shards"])]
    resources = tpu(config["tpu"]) if "tpu" in config else cpu(1)
    print("mapping", flush=True)
    fn = globals()[config["maps"]]
    counts = map_shards(fn, shards, output_path=config["output_path"], resources=resources)
    return {**counts, "process": os.getpid()}


def _meet(shard: MarkedShard) -> None:
    Path(shard.told, f"here-{shard.number}").touch()
    _await_files(Path(shard.told), "here-*", shard.meets)


def _await_files(folder: Path, pattern: str, count: int) -> None:
    end_s = time.monotonic() + MEETING_TIMEOUT_S
    while len(list(folder.glob(pattern))) < count:
        if time.monotonic() > end_s:
            raise TimeoutError(f"there were never {count} of {pattern} at once")
        time.sleep(0.02)
