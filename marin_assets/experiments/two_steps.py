"""Two steps: write numbers, compute their statistics. Marin's first tutorial, with `n` in the version.

python -m marin_assets.experiments.two_steps
"""

from __future__ import annotations

from dataclasses import dataclass

from marin_assets import THIS_OUTPUT_PATH, Step, executor_main, output_path_of, versioned
from marin_resources.storage.files import read_json, write_json
from marin_resources.storage.paths import join


@dataclass(frozen=True, kw_only=True)
class NumbersConfig:
    n: int = versioned(100)
    """The number of numbers to write."""
    output_path: str = THIS_OUTPUT_PATH


@dataclass(frozen=True, kw_only=True)
class StatsConfig:
    input_path: str
    """Folder of numbers.json."""
    output_path: str = THIS_OUTPUT_PATH


def make_numbers(config: NumbersConfig) -> dict[str, int]:
    """Write the numbers from 0 to n-1 to numbers.json."""
    write_json(join(config.output_path, "numbers.json"), list(range(config.n)))
    return {"numbers": config.n}


def compute_stats(config: StatsConfig) -> dict[str, int]:
    """Write sum, minimum and maximum of the numbers to stats.json."""
    numbers = read_json(join(config.input_path, "numbers.json"))
    stats = {"sum": sum(numbers), "min": min(numbers), "max": max(numbers)}
    write_json(join(config.output_path, "stats.json"), stats)
    return stats


def steps() -> list[Step]:
    data = Step(name="two_steps/data", fn=make_numbers, config=NumbersConfig())
    stats = Step(name="two_steps/stats", fn=compute_stats, config=StatsConfig(input_path=output_path_of(data)))
    return [data, stats]


if __name__ == "__main__":
    executor_main(steps())
