"""The paths of random DAGs, as marin-core computes them and as we do: all must be equal.

    python tests/benchmarks/marin_compat.py

The DAGs are seeded: nested configs, values of every kind that a version takes, inputs used several times, inputs below
inputs, pseudo-dependencies, hardcoded and mirrored paths, steps given twice, chains deeper than a version inlines.
Both sides build them from one table. marin-core is run in an environment of its own. Exits 1 on any difference.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "sides"))

import step_table
from marin_core import RELEASE, run_marin

from marin_assets import InputName, Step, mirrored, output_path_of, this_output_path, versioned
from marin_assets.step.graph import build_graph

SEEDS = range(6)
STEPS = 100
WORDS = SimpleNamespace(
    Step=Step,
    versioned=versioned,
    output_path_of=output_path_of,
    this_output_path=this_output_path,
    hardcoded=InputName.hardcoded,
    mirrored=mirrored,
)


def main() -> int:
    table = [row for seed in SEEDS for row in random_steps(seed)]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(table, file)
        file.flush()
        theirs = run_marin("paths_marin.py", file.name)
    ours = our_paths(table)
    different = [id_ for id_ in theirs if ours.get(id_) != theirs[id_]]
    for id_ in different[:10]:
        print(f"{id_}: {ours.get(id_)} here, {theirs[id_]} there")
    print(f"{len(theirs)} steps in {len(SEEDS)} DAGs against {RELEASE}: {len(different)} mismatches (limit 0)")
    return 1 if different or ours.keys() != theirs.keys() else 0


def our_paths(table: list[dict[str, Any]]) -> dict[str, str]:
    steps = step_table.build(table, WORDS)
    graph = build_graph(steps.values())
    return {id_: graph[step].version.path for id_, step in steps.items()}


def random_steps(seed: int) -> list[dict[str, Any]]:
    """Rows of a table; the first of a config's fields is often the step before, so that chains grow deep."""
    dice = random.Random(seed)
    rows: list[dict[str, Any]] = []
    for number in range(STEPS):
        if rows and dice.random() < 0.05:
            rows.append({**dice.choice(rows), "id": f"{seed}/{number}"})  # the same step, given twice
            continue
        config = {field: random_value(dice, rows, depth=0) for field in ("x", "y", "z")}
        if rows and dice.random() < 0.5:
            config["x"] = random_path(dice, rows[-1:])
        name = f"{dice.choice(['raw', 'documents', 'tokenized/Größe', 'a=1,b'])}/dag{seed}/step-{number}"
        rows.append({"id": f"{seed}/{number}", "name": name, "config": config})
    return rows


def random_value(dice: random.Random, rows: list[dict[str, Any]], depth: int) -> Any:
    kind = dice.random()
    if depth < 3 and kind < 0.3:
        inner = [random_value(dice, rows, depth + 1) for _ in range(dice.randint(0, 3))]
        shape = dice.choice(["list", "$tuple", "dict", "$dc"])
        if shape == "list":
            return inner
        if shape == "$tuple":
            return {"$tuple": inner}
        named = {f"{dice.choice('abcde')}{i}": value for i, value in enumerate(inner)}
        return {"$dc": named} if shape == "$dc" else named
    if rows and kind < 0.55:
        return random_path(dice, rows)
    if kind < 0.65:
        hard = {"$hard": dice.choice(["raw/external-abc123", "gs://bucket/ünï", "/absolute", "a//b/"])}
        return dice.choice([hard, {"$mirrored": [dice.choice([hard, {"$v": "raw/x"}, "plain/x"]), 50]}])
    return {"$v": random_leaf(dice, 0)} if kind < 0.9 else dice.choice([1, "unversioned", None, 2.5])


def random_path(dice: random.Random, rows: list[dict[str, Any]]) -> Any:
    id_ = dice.choice(rows[-12:] if dice.random() < 0.7 else rows)["id"]
    sub = dice.choice(["train", "a/b", "", "x/", "/y"])
    path = dice.choice([{"$step": id_}, {"$out": [id_, None]}, {"$out": [id_, sub]}, {"$cd": [id_, [sub, "z"]]}])
    if "$step" not in path and dice.random() < 0.25:
        return {"$nonblocking": path}
    return {"$mirrored": [path, 7]} if dice.random() < 0.1 else path


def random_leaf(dice: random.Random, depth: int) -> Any:
    if depth < 3 and dice.random() < 0.3:
        items = [random_leaf(dice, depth + 1) for _ in range(dice.randint(0, 3))]
        named = {f"{dice.choice('zyx')}{i}": item for i, item in enumerate(items)}
        return dice.choice([items, {"$tuple": items}, named, {"$dc": named}])
    numbers = [dice.randint(-(10**20), 10**20), dice.random(), 1e-7, 3e22, -0.0, 0.1 + 0.2, dice.randint(0, 9)]
    texts = ["", "naïve ☃", '\u2028\n\t"\\', "😀", f"t{dice.random()}"]
    tagged = [{"$enum": "RED"}, {"$enum": "BLUE"}, {"$path": "a/b"}, {"$timedelta": [1, 2, 3]}]
    return dice.choice([None, True, False, dice.choice(numbers), dice.choice(texts), dice.choice(tagged)])


if __name__ == "__main__":
    sys.exit(main())
