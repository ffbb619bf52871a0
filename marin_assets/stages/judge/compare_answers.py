"""Have a model judge, instruction by instruction, whether a model's answer is better than a baseline's.

In:  conversations with the answers of both (`conversations.py`); the folder of the judge's Hugging Face export.
Out: `judgements.jsonl.zst`, documents: each judgement, whose text is the judge's; `samples.jsonl`, a row for each
     judged instruction; `scores.csv`; `judgements.html`, to read them.

The form of AlpacaEval (Li et al. 2023), with its length-controlled win rate (`length_control.py`). The order of the two
answers is drawn by a seed and the instruction, or both orders are judged. With verdict="logprobs" the preference is the
probability of "A" as the judge's first token against that of "B"; with "text" the judge reasons, and its verdict is
read by a grammar (`verdict.py`). Equal answers are a tie without a judgement. A prompt that does not fit in the judge's
window is not cut: its instruction is not judged, and is counted. A killed step resumes after the judgements it has.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from marin_assets.documents import Document
from marin_assets.inference.engine import Endpoint, Engine
from marin_assets.stages.judge.conversations import JudgeError
from marin_assets.stages.judge.model_calls import ModelCalls, open_model, remove_journal, require_model
from marin_assets.stages.judge.output_files import task_of, write_judgements
from marin_assets.stages.judge.page import Example, page_of_judgements
from marin_assets.stages.judge.pairs import Pair, read_pairs
from marin_assets.stages.judge.prompt import JudgePrompt
from marin_assets.stages.judge.verdict import FIRST, SECOND, UNREADABLE, Unreadable, preference_of
from marin_assets.stages.judge.win_rates import (
    WIN_RATE,
    Preference,
    biases,
    category_scores,
    outcomes,
    task_scores,
)
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.types.near_names import expected_one_of

KINDS = ("jax", "html")

LOGPROBS, TEXT = VERDICTS = ("logprobs", "text")
FIELDS = ("instruction", "answer_a", "answer_b")
PAIR = """Two assistants answered the same instruction. Decide whose answer a careful reader would prefer: correct, \
to the point, complete. Neither the order of the answers nor their length counts.

### Instruction
{instruction}

### Answer A
{answer_a}

### Answer B
{answer_b}

### Task
"""
LETTER_PROMPT = PAIR + "Which answer is better? Reply with one letter, A or B, and nothing else."
TEXT_PROMPT = PAIR + (
    "Give your reasons in a few sentences. Then end with your verdict alone on the last line: [[A]] if answer A is "
    "better, [[B]] if answer B is better, [[C]] if neither is."
)
MODEL_FIRST, BASELINE_FIRST = ORDERS = ("model_first", "baseline_first")


@dataclass(frozen=True, kw_only=True)
class CompareAnswersConfig:
    answers_path: str
    """Conversations with the answers of the model."""
    baseline_path: str
    """Conversations with other answers to the same instructions."""
    judge_path: str | None
    """Folder of a Hugging Face export, with a chat template; None: an endpoint's model, which gets messages."""
    output_path: str = THIS_OUTPUT_PATH
    verdict: str = versioned(LOGPROBS)
    """The way in which the verdict is read: "logprobs" or "text"."""
    prompt: str | None = versioned(None)
    """The judge's prompt, with {instruction}, {answer_a} and {answer_b}; None: LETTER_PROMPT or TEXT_PROMPT."""
    system_prompt: str | None = versioned(None)
    """The system's turn before it."""
    both_orders: bool = versioned(False)
    """Judge each pair in both orders; the preference is the mean."""
    seed: int = versioned(0)
    """Seed of the orders."""
    max_tokens: int = versioned(512)
    """Most tokens of a judge's text."""
    least_mass: float = versioned(0.01)
    """With "logprobs": the least probability of "A" and "B" together; with less, the judge has given no verdict."""
    task: str = versioned("pairwise")
    """Name of the task in the scores."""
    engine: Engine | Endpoint | None = None
    """Engine of the judge: our JAX model in this process if None."""
    save_every_s: float | None = None
    """Interval between two saves of judgements; None: as short as writing takes 2 % of the time."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _checked, name)


@dataclass(frozen=True, kw_only=True)
class _Call:
    """A judgement to make."""

    pair: Pair
    order: str
    """MODEL_FIRST or BASELINE_FIRST."""

    @property
    def key(self) -> str:
        return f"{self.pair.id}/{self.order}"

    def fields(self) -> dict[str, str]:
        """The values of the prompt's fields."""
        answers = (self.pair.answer or "", self.pair.baseline or "")
        first, second = answers if self.order == MODEL_FIRST else answers[::-1]
        return dict(zip(FIELDS, (self.pair.instruction, first, second), strict=True))


def compare_answers(config: CompareAnswersConfig) -> dict[str, Any]:
    """Judge.

    Returns win_rate, length_controlled_win_rate and discrete_win_rate with their _stderr, from 0 to 1; wins, losses,
    ties, equal_answers; first_preferred, order_agreement, length_correlation (`win_rates.py`); judgements, unreadable,
    each unreadable_<reason>, unreadable_share; too_long, unanswered, instructions, judged, unjudged_share; scores, by
    task. A number that the judgements do not give is left out. Raises JudgeError for instructions that differ, one that
    occurs twice, a side without answers, a judge without a chat template; ModelError, EngineError.
    """
    prompt = _checked(config)
    pairs = read_pairs(config.answers_path, config.baseline_path)
    calls = [call for pair in pairs for call in _calls(config, pair)]
    with open_model(config.engine, config.judge_path, config.output_path, config.save_every_s) as judge:
        verdicts = _judge(config, judge, {call.key: _messages(config, prompt, call) for call in calls})
        rows = {key: judge.rows[key] for key in verdicts}
    preferences = _preferences(pairs, calls, verdicts)
    preferred = list(preferences.values())
    of_all = task_scores(preferred)
    scores = {**({config.task: of_all} if of_all else {}), **category_scores(config.task, preferred)}
    numbers = {
        **outcomes(preferred), "equal_answers": sum(pair.is_equal for pair in pairs), **biases(preferred),
        **_counts(pairs, calls, verdicts), "judged": len(preferred), "unjudged_share": 1 - len(preferred) / len(pairs),
    }  # fmt: skip
    write_judgements(
        config.output_path,
        (_document(call, rows.get(call.key, {}), verdicts.get(call.key, "too_long")) for call in calls),
        _samples(config.task, pairs, preferences),
        scores,
        page_of_judgements(scores, numbers, _sections(pairs, preferences, rows)),
    )
    remove_journal(config.output_path)
    return {**{name: value for name, value in of_all.items() if name != "instances"}, **numbers, "scores": scores}


def _checked(config: CompareAnswersConfig) -> JudgePrompt:
    if config.verdict not in VERDICTS:
        raise JudgeError(f"verdict is {config.verdict!r}, {expected_one_of(config.verdict, VERDICTS)}")
    if config.max_tokens < 1 or not 0 <= config.least_mass < 1:
        raise JudgeError(
            f"CompareAnswersConfig has max_tokens={config.max_tokens!r} and least_mass={config.least_mass!r}, expected "
            "at least 1, and a probability below 1."
        )
    require_model(config.judge_path, config.engine)
    if config.judge_path is None and config.verdict == LOGPROBS:
        raise JudgeError(
            'CompareAnswersConfig has verdict="logprobs" and no judge_path, expected the tokenizer of a judge whose '
            'log-probabilities are read. Set verdict="text".'
        )
    if not config.task or config.task.startswith("/"):
        raise JudgeError(f"task is {config.task!r}, expected the name of a task, such as 'pairwise'.")
    own = LETTER_PROMPT if config.verdict == LOGPROBS else TEXT_PROMPT
    return JudgePrompt(own if config.prompt is None else config.prompt, FIELDS)


def _calls(config: CompareAnswersConfig, pair: Pair) -> Iterator[_Call]:
    if not pair.is_answered or pair.is_equal:
        return
    drawn = hashlib.blake2b(f"{config.seed}\0{pair.id}\0{pair.instruction}".encode(errors="replace")).digest()[0] % 2
    for order in ORDERS if config.both_orders else (ORDERS[drawn],):
        yield _Call(pair=pair, order=order)


def _messages(config: CompareAnswersConfig, prompt: JudgePrompt, call: _Call) -> list[dict[str, str]]:
    system = [{"role": "system", "content": config.system_prompt}] if config.system_prompt else []
    return [*system, {"role": "user", "content": prompt.render(call.fields())}]


def _judge(
    config: CompareAnswersConfig, judge: ModelCalls, chats: Mapping[str, list[dict[str, str]]]
) -> dict[str, float | Unreadable]:
    """By key: how much the answer that stands first is preferred, or why that is not seen. Too long ones are left
    out."""
    if config.verdict == TEXT:
        judge.complete(prompts := judge.prompts(chats, config.max_tokens))
        return {key: preference_of(judge.rows[key]["text"]) for key in prompts}
    first, second = (judge.tokens_of(letter) for letter in (FIRST, SECOND))
    judge.score(scored := judge.scored(chats), [*first, *second])
    return {key: _share_of(judge.rows[key]["logprobs"], len(first), config.least_mass) for key in scored}


def _share_of(logprobs: Sequence[float], firsts: int, least_mass: float) -> float | Unreadable:
    """The share of the first `firsts` tokens in the probability of all; none if that is less than `least_mass`."""
    shares = [math.exp(logprob) for logprob in logprobs]
    mass = math.fsum(shares)
    return math.fsum(shares[:firsts]) / mass if mass and mass >= least_mass else "no_verdict"


def _preferences(
    pairs: Iterable[Pair], calls: Iterable[_Call], verdicts: Mapping[str, float | Unreadable]
) -> dict[str, Preference]:
    """By instruction, of those whose judgements all have a verdict, and of equal answers."""
    orders: dict[str, list[_Call]] = {}
    for call in calls:
        orders.setdefault(call.pair.id, []).append(call)
    preferences: dict[str, Preference] = {}
    for pair in pairs:
        of = orders.get(pair.id, [])
        firsts = [verdict for call in of if not isinstance(verdict := verdicts.get(call.key, "too_long"), str)]
        if len(firsts) < len(of) or not (firsts or pair.is_equal):
            continue
        values = [first if call.order == MODEL_FIRST else 1 - first for call, first in zip(of, firsts, strict=True)]
        preferences[pair.id] = Preference(
            value=math.fsum(values) / len(values) if values else 0.5,
            category=pair.category,
            longer=pair.longer,
            difficulty=pair.difficulty,
            first_preferred=tuple(firsts),
        )
    return preferences


def _counts(
    pairs: Sequence[Pair], calls: Iterable[_Call], verdicts: Mapping[str, float | Unreadable]
) -> dict[str, float]:
    reasons = Counter(verdict for verdict in verdicts.values() if isinstance(verdict, str))
    return {
        "judgements": len(verdicts),
        "unreadable": reasons.total(),
        **{f"unreadable_{reason}": reasons[reason] for reason in UNREADABLE if reasons[reason]},
        "unreadable_share": reasons.total() / max(len(verdicts), 1),
        "too_long": len({call.pair.id for call in calls if call.key not in verdicts}),
        "unanswered": sum(not pair.is_answered for pair in pairs),
        "instructions": len(pairs),
    }


def _document(call: _Call, row: Mapping[str, Any], verdict: float | str) -> Document:
    pair = call.pair
    facts: dict[str, Any] = {
        "instruction": pair.id, "order": call.order, "category": pair.category,
        "first_preferred": None if isinstance(verdict, str) else verdict,
        "unreadable": verdict if isinstance(verdict, str) else None,
        **{name: row.get(name) for name in ("logprobs", "tokens", "finish")},
        "prompt": pair.instruction, "answer": pair.answer, "baseline": pair.baseline,
    }  # fmt: skip
    metadata = {name: value for name, value in facts.items() if value is not None}
    return Document(id=call.key, text=row.get("text", ""), source="judge", metadata=metadata)


def _samples(task: str, pairs: Iterable[Pair], preferences: Mapping[str, Preference]) -> list[dict[str, Any]]:
    rows = [
        {
            "task": task_of(task, pair.category), "doc_id": pair.id, "context": pair.instruction,
            "target": pair.baseline, "generated": pair.answer, WIN_RATE: preferences[pair.id].value,
        }
        for pair in pairs
        if pair.id in preferences
    ]  # fmt: skip
    return sorted(rows, key=lambda row: str(row["task"]))


def _sections(
    pairs: Iterable[Pair], preferences: Mapping[str, Preference], rows: Mapping[str, Mapping[str, Any]]
) -> dict[str, list[Example]]:
    """Examples of wins, losses, ties and of what was not judged."""
    sections: dict[str, list[Example]] = {name: [] for name in ("Wins", "Losses", "Ties", "Not judged")}
    for pair in pairs:
        value = preferences[pair.id].value if pair.id in preferences else None
        texts = {"instruction": pair.instruction, "answer": pair.answer, "baseline's answer": pair.baseline}
        for order in ORDERS:
            texts[f"judge, {order.replace('_', ' ')}"] = rows.get(f"{pair.id}/{order}", {}).get("text")
        example = Example(
            title=pair.id if value is None else f"{pair.id}: preference {value:.2f}",
            texts={name: text for name, text in texts.items() if text is not None},
        )
        name = "Not judged" if value is None else "Ties" if value == 0.5 else "Wins" if value > 0.5 else "Losses"
        sections[name].append(example)
    return sections
