"""The admission test of an environment: whoever trains on its rewards can believe them.

require_admissible({"sums": DigitSums()}, {"sums": lambda example: str(example["a"] + example["b"])})
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from marin_assets.stages.train.rl.lessons import lesson_of, open_environment
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.wire.config_json import encode

RUBBISH = ("", "banana", "\n", "?", "{}", "[]", ";", "<answer></answer>", "\\boxed{}", "lorem ipsum dolor sit amet")
INDICES = (0, 1, 2, 499, 500, 2**31 - 1, 123456789)
SEED = 7
PROGRAM = """
import json, sys, warnings
warnings.simplefilter("ignore")
from marin_assets.stages.train.rl.lessons import open_environment
from marin_resources.wire.config_json import decode
request = json.load(sys.stdin)
for name, lesson in decode(request["lessons"]).items():
    environment = open_environment(name, lesson)
    examples = [environment.example(request["seed"], index) for index in request["indices"]]
    print("examples", json.dumps([name, examples, [environment.prompt(example) for example in examples]]))
"""


def require_admissible(
    environments: Mapping[str, Any],
    right_answers: Mapping[str, Callable[[Any, dict[str, Any]], str]],
    indices: Sequence[int] = INDICES,
) -> None:
    """Assert it of environments by name. `right_answers` are functions of an environment and an example."""
    lessons = unwrap_versioned_value({name: lesson_of(environment) for name, environment in environments.items()})
    made = {}
    for name, lesson in lessons.items():
        environment = open_environment(name, lesson)
        examples = [_as_stored(environment.example(SEED, index)) for index in indices]
        made[name] = [examples, [environment.prompt(example) for example in examples]]
        again = [_as_stored(environment.example(SEED, index)) for index in reversed(indices)]
        assert again[::-1] == examples, f"{name}: the same example is another one the second time"
        for example in examples:
            answer = right_answers[name](environment, example)
            assert environment.reward(example, answer) == 1.0, f"{name}: {answer!r} is right for {example!r:.300}"
            for rubbish in RUBBISH:
                reward = environment.reward(example, rubbish)
                assert reward == 0.0, f"{name}: {rubbish!r} has the reward {reward} for {example!r:.300}"
    for hash_seed in ("1", "2"):
        for name, seen in _examples_of_another_process(lessons, indices, hash_seed).items():
            assert seen == made[name], f"{name}: its examples differ from process to process"


def _as_stored(example: Any) -> Any:
    return json.loads(json.dumps(example, allow_nan=False))


def _examples_of_another_process(lessons: Any, indices: Sequence[int], hash_seed: str) -> dict[str, Any]:
    request = {"lessons": encode(lessons), "seed": SEED, "indices": list(indices)}
    env = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], input=json.dumps(request), capture_output=True, text=True, env=env, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    lines = [line.removeprefix("examples ") for line in done.stdout.splitlines() if line.startswith("examples ")]
    return {name: seen for name, *seen in map(json.loads, lines)}
