"""Problems of the generators of Reasoning Gym, as far as they are the same everywhere and rubbish has no reward.

https://github.com/open-thought/reasoning-gym (Stojanovski et al. 2025, arXiv 2505.24760)
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from importlib import import_module
from importlib.metadata import version
from types import ModuleType
from typing import Any, ClassVar

from marin_assets.stages.train.rl.environments.environment import Environment, Example, Prompt, asked, drawn
from marin_resources.types.errors import InvalidInputError
from marin_resources.types.near_names import expected_one_of

VERSION = "0.1.25"
"""The version whose generators have been tried."""
A_DATASET = 500
"""Problems with one seed of the package, its own default: some generators make all of them at once."""
KEPT_PROBLEMS = 64
ANSWER = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)
RIGHT = 1 - 1e-9

EXACT = frozenset({"binary_matrix", "spiral_matrix", "string_insertion"})
"""Generators whose scorer runs a text that is not the answer as a program. It is not called: the answer is compared."""
ARITHMETIC = re.compile(r"(?!.*\*\*)[0-9+*/() -]{1,200}")
EXPRESSIONS = frozenset({"countdown"})
"""Generators whose scorer runs a text as a program, which is harmless for one that is ARITHMETIC. Others are wrong."""

OTHER_PROCESS = "its problems differ from process to process, as they follow the hashes of texts"
OWN_ANSWER = "its scorer gives less than the full reward to its own answers"
RUNS_TEXTS = "its scorer runs the text of the model as a program, without a sandbox"
REFUSED = {
    **dict.fromkeys(
        (
            "codeio",
            "isomorphic_strings",
            "knight_swap",
            "list_functions",
            "polynomial_multiplication",
            "ransom_note",
            "word_ladder",
        ),
        OTHER_PROCESS,
    ),
    **dict.fromkeys(("boxnet", "graph_color", "propositional_logic", "rubiks_cube", "rush_hour"), OWN_ANSWER),
    "game_of_life_halting": "its scorer gives the full reward to any text",
    **dict.fromkeys(("intermediate_integration", "n_queens", "simple_integration"), RUNS_TEXTS),
    "puzzle24": f"{RUNS_TEXTS}, and gives the full reward to other numbers than those of the problem",
    "coin_flip": "its scorer gives the full reward to a part of the answer, such as '0' of '0.25'",
    **dict.fromkeys(("game_of_life", "prime_factorization"), "its scorer raises an error for some texts"),
    "zebra_puzzles": "it needs pycosat, which has no wheels and would have to be compiled",
    "composite": "it is made of others. Have a lesson for each of them",
}
"""Generators that are not used, with the reason."""


class ReasoningGymError(InvalidInputError):
    """A generator that cannot be used, or settings that it does not take."""


@dataclass(frozen=True, kw_only=True)
class ReasoningGym(Environment):
    """The reward is 1 for an answer to which the package gives the full reward, and else 0.

    The answer is the content of the last <answer>…</answer> of a text, or else the whole text.
    """

    task: str
    """Name of the generator, such as "chain_sum"."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Those of its config in the package, such as {"max_terms": 4}."""
    instruction: str = "\nAnswer:"
    """Follows the problem."""
    is_chat: bool = False
    """The prompt is a message of a user, for a model with a chat template."""
    extras: ClassVar[Sequence[str]] = ("rewards",)

    def prepare(self) -> None:
        """Raises ReasoningGymError."""
        if (installed := version("reasoning-gym")) != VERSION:
            raise ReasoningGymError(
                f"reasoning-gym {installed} is installed, expected {VERSION}, whose generators have been tried. "
                "Install the extra 'rewards'."
            )
        if self.task in REFUSED:
            raise ReasoningGymError(f"The generator {self.task!r} of reasoning-gym is not used: {REFUSED[self.task]}.")
        if self.task not in (usable := usable_tasks()):
            raise ReasoningGymError(f"task is {self.task!r}, {expected_one_of(self.task, usable)}")
        if taken := {"seed", "size"} & set(self.settings):
            raise ReasoningGymError(f"settings has {min(taken)!r}, which the training sets. Leave it out.")
        try:
            self._problem(0, 0)
        except Exception as error:  # configs of the package assert
            raise ReasoningGymError(
                f"The generator {self.task!r} of reasoning-gym makes no problem with the settings {self.settings!r} "
                f"({type(error).__name__}: {error}). Correct the settings."
            ) from error

    def example(self, seed: int, index: int) -> Example:
        _, problem = self._problem(seed, index)
        return {"seed": seed, "index": index, "question": problem["question"], "answer": problem["answer"]}

    def prompt(self, example: Example) -> Prompt:
        return asked(example["question"] + self.instruction, self.is_chat)

    def reward(self, example: Example, text: str) -> float:
        answers = ANSWER.findall(text)
        answer = (answers[-1] if answers else text).strip()
        if self.task in EXACT:
            return float(answer == example["answer"])
        if not answer or (self.task in EXPRESSIONS and not ARITHMETIC.fullmatch(answer)):
            return 0.0
        dataset, problem = self._problem(example["seed"], example["index"])
        return float(dataset.score_answer(answer, problem) >= RIGHT)

    @cached_property
    def _problem(self) -> Callable[[int, int], tuple[Any, dict[str, Any]]]:
        return lru_cache(KEPT_PROBLEMS)(self._make_problem)

    def _make_problem(self, seed: int, index: int) -> tuple[Any, dict[str, Any]]:
        """The data set of the package with this problem, and the problem, whose metadata JSON may not have."""
        number, place = divmod(index, A_DATASET)
        own_seed = drawn(seed, number).randrange(2**32)
        dataset = _factory().create_dataset(self.task, **self.settings, seed=own_seed, size=A_DATASET)
        return dataset, dataset[place]


def usable_tasks() -> list[str]:
    """The names of the generators that are used."""
    return sorted(_factory().DATASETS.keys() - REFUSED)


def _factory() -> Any:
    """The module of the package that makes data sets, which takes 4 s to import."""
    sys.modules.setdefault("pycosat", ModuleType("pycosat"))  # imported for "zebra_puzzles" alone, and not installed
    return import_module("reasoning_gym.factory")
