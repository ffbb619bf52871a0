"""Have a model judge, instruction by instruction, whether a model's answer is better than a baseline's.

In:  conversations with the answers of both (`conversations.py`); the folder of the judge's Hugging Face export.
Out: `judgements.jsonl.zst`, documents: each judgement, whose text is the judge's; `samples.jsonl`, a row for each judged
     instruction; `scores.csv`; `judgements.html`, to read them.

The form of AlpacaEval (Li et al. 2023), with its length-controlled win rate (`length_control.py`). The order of the two
answers is drawn by a seed and the instruction, or both orders are judged. With `verdict="logprobs"` the preference is the
probability of "A" as the judge's first token against that of "B"; with "text" the judge reasons, and its verdict is read
by a grammar (`verdict.py`). Equal answers are a tie without a judgement. A prompt that does not fit in the judge's
window is not cut: its instruction is not judged, and is counted. A killed step resumes after the judgements that it had.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from marin_assets.documents import Document
from marin_assets.inference.decoder import Prompt
from marin_assets.inference.engine import Engine
from marin_assets.stages.judge.conversations import Conversation, JudgeError, read_conversations
from marin_assets.stages.judge.model_calls import ModelCalls, open_model, remove_journal
from marin_assets.stages.judge.output_files import task_of, write_judgements
from marin_assets.stages.judge.page import Example, page_of_judgements
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
MODEL_FIRST, BASELINE_FIRST = "model_first", "baseline_first"


@dataclass(frozen=True, kw_only=True)
class CompareAnswersConfig:
    answers_path: str
    """Conversations with the answers of the model."""
    baseline_path: str
    """Conversations with other answers to the same instructions."""
    judge_path: str
    """Folder of a Hugging Face export, with a chat template."""
    output_path: str = THIS_OUTPUT_PATH
    verdict: str = versioned(LOGPROBS)
    """How the judge's verdict is read: "logprobs" or "text"."""
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
    engine: Engine | None = None
    """Engine of the judge: our JAX model in this process if None."""
    save_every_s: float | None = None
    """Interval between two saves of judgements; None: as short as writing takes 2 % of the time."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _checked, name)


@dataclass(frozen=True, kw_only=True)
class _Call:
    """A judgement to make."""

    instruction: str
    order: str
    text: str
    """The prompt."""

    @property
    def key(self) -> str:
        return f"{self.order}/{self.instruction}"


def compare_answers(config: CompareAnswersConfig) -> dict[str, Any]:
    """Judge.

    Returns win_rate, length_controlled_win_rate and discrete_win_rate with their _stderr, from 0 to 1; wins, losses,
    ties, equal_answers; first_preferred, order_agreement, length_correlation (`win_rates.py`); judgements, unreadable
    and each unreadable_<reason>, unreadable_share; too_long, unanswered, instructions, judged, unjudged_share; scores, by
    task. A number that the judgements do not give is not there. Raises JudgeError for instructions that differ, one that
    occurs twice, sides without answers, a judge without a chat template, a prompt with an unknown field; ModelError,
    EngineError.
    """
    prompt = _checked(config)
    pairs = _pairs(config)
    calls = [call for pair in pairs.values() for call in _calls(config, prompt, *pair)]
    with open_model(config.engine, config.judge_path, config.output_path, config.save_every_s) as judge:
        prompts = {call.key: judge.chat(_messages(config, call)) for call in calls}
        too_long = {key for key, ids in prompts.items() if not judge.fits(ids, _answer_tokens(config))}
        read = _judge(config, judge, {key: ids for key, ids in prompts.items() if key not in too_long})
        rows = {call.key: judge.rows[call.key] for call in calls if call.key not in too_long}
    preferences = _preferences(pairs, calls, read)
    scores = {
        **({config.task: numbers} if (numbers := task_scores(list(preferences.values()))) else {}),
        **category_scores(config.task, list(preferences.values())),
    }
    reasons = Counter(verdict for verdict in read.values() if isinstance(verdict, str))
    result: dict[str, Any] = {
        **{name: value for name, value in scores.get(config.task, {}).items() if name != "instances"},
        **outcomes(list(preferences.values())),
        "equal_answers": sum(_is_equal(*pair) for pair in pairs.values()),
        **biases(list(preferences.values())),
        "judgements": len(read),
        "unreadable": reasons.total(),
        **{f"unreadable_{reason}": reasons[reason] for reason in UNREADABLE if reasons[reason]},
        "unreadable_share": reasons.total() / max(len(read), 1),
        "too_long": len({call.instruction for call in calls if call.key in too_long}),
        "unanswered": sum(not (mine.answers and theirs.answers) for mine, theirs in pairs.values()),
        "instructions": len(pairs),
        "judged": len(preferences),
        "unjudged_share": 1 - len(preferences) / len(pairs),
    }
    write_judgements(
        config.output_path,
        _documents(pairs, calls, rows, read),
        _samples(config.task, pairs, preferences),
        scores,
        page_of_judgements(
            scores, {n: v for n, v in result.items() if n not in scores.get(config.task, {})},
            _sections(pairs, preferences, rows),
        ),
    )  # fmt: skip
    remove_journal(config.output_path)
    return {**result, "scores": scores}


def _checked(config: CompareAnswersConfig) -> JudgePrompt:
    if config.verdict not in VERDICTS:
        raise JudgeError(f"verdict is {config.verdict!r}, {expected_one_of(config.verdict, VERDICTS)}")
    if config.max_tokens < 1 or not 0 <= config.least_mass < 1:
        raise JudgeError(
            f"CompareAnswersConfig has max_tokens={config.max_tokens!r} and least_mass={config.least_mass!r}, expected "
            "at least 1, and a probability below 1."
        )
    if not config.task or config.task.startswith("/"):
        raise JudgeError(f"task is {config.task!r}, expected the name of a task, such as 'pairwise'.")
    own = LETTER_PROMPT if config.verdict == LOGPROBS else TEXT_PROMPT
    return JudgePrompt(own if config.prompt is None else config.prompt, FIELDS)


def _pairs(config: CompareAnswersConfig) -> dict[str, tuple[Conversation, Conversation]]:
    """The model's and the baseline's answer to each instruction. Raises JudgeError for sides that do not fit."""
    mine, theirs = (read_conversations(path) for path in (config.answers_path, config.baseline_path))
    if lacking := sorted(mine.keys() ^ theirs.keys()):
        raise JudgeError(
            f"{config.answers_path!r} and {config.baseline_path!r} have {len(lacking)} instructions that only one of "
            f"them has, such as {lacking[0]!r}, expected the same ids. Answer the same instructions with both models."
        )
    for id_, conversation in mine.items():
        if len(conversation.turns) > 1:
            raise JudgeError(
                f"The instruction {id_!r} has {len(conversation.turns)} turns, expected one: answers in pairs have one "
                "prompt. Grade conversations of several turns (grade_answers)."
            )
        if conversation.turns != theirs[id_].turns:
            raise JudgeError(
                f"The instruction {id_!r} is {conversation.turns[0]!r:.100} below {config.answers_path!r} and "
                f"{theirs[id_].turns[0]!r:.100} below {config.baseline_path!r}, expected the same text. Answer the same "
                "instructions with both models."
            )
    for path, side in ((config.answers_path, mine), (config.baseline_path, theirs)):
        if not any(conversation.answers for conversation in side.values()):
            raise JudgeError(f"No conversation below {path!r} has an answer. Give the output of answer_instructions.")
    return {id_: (conversation, theirs[id_]) for id_, conversation in mine.items()}


def _is_equal(mine: Conversation, theirs: Conversation) -> bool:
    return bool(mine.answers) and mine.answers == theirs.answers


def _calls(
    config: CompareAnswersConfig, prompt: JudgePrompt, mine: Conversation, theirs: Conversation
) -> Iterator[_Call]:
    if not (mine.answers and theirs.answers) or _is_equal(mine, theirs):
        return
    drawn = hashlib.blake2b(f"{config.seed}\0{mine.id}\0{mine.turns[0]}".encode(errors="replace")).digest()[0] % 2
    orders = (MODEL_FIRST, BASELINE_FIRST) if config.both_orders else ((MODEL_FIRST, BASELINE_FIRST)[drawn],)
    for order in orders:
        first, second = (mine, theirs) if order == MODEL_FIRST else (theirs, mine)
        values = dict(zip(FIELDS, (mine.turns[0], first.answers[0], second.answers[0]), strict=True))
        yield _Call(instruction=mine.id, order=order, text=prompt.render(values))


def _messages(config: CompareAnswersConfig, call: _Call) -> list[dict[str, str]]:
    system = [{"role": "system", "content": config.system_prompt}] if config.system_prompt else []
    return [*system, {"role": "user", "content": call.text}]


def _answer_tokens(config: CompareAnswersConfig) -> int:
    return config.max_tokens if config.verdict == TEXT else 0


def _judge(
    config: CompareAnswersConfig, judge: ModelCalls, prompts: Mapping[str, tuple[int, ...]]
) -> dict[str, float | Unreadable]:
    """By key: how much the answer that stands first is preferred, or why it is not known."""
    if config.verdict == TEXT:
        judge.complete({key: Prompt(ids=ids, max_tokens=config.max_tokens) for key, ids in prompts.items()})
        return {key: preference_of(judge.rows[key]["text"]) for key in prompts}
    first, second = (judge.tokens_of(letter) for letter in (FIRST, SECOND))
    judge.score(prompts, [*first, *second])
    verdicts: dict[str, float | Unreadable] = {}
    for key in prompts:
        shares = [math.exp(logprob) for logprob in judge.rows[key]["logprobs"]]
        mass = math.fsum(shares)
        verdicts[key] = (
            math.fsum(shares[: len(first)]) / mass if mass >= max(config.least_mass, 1e-12) else "no_verdict"
        )
    return verdicts


def _preferences(
    pairs: Mapping[str, tuple[Conversation, Conversation]],
    calls: Sequence[_Call],
    read: Mapping[str, float | Unreadable],
) -> dict[str, Preference]:
    """By instruction, of those whose judgements all have a verdict, and of equal answers."""
    by_instruction: dict[str, list[_Call]] = {}
    for call in calls:
        by_instruction.setdefault(call.instruction, []).append(call)
    preferences: dict[str, Preference] = {}
    for id_, (mine, theirs) in pairs.items():
        of = by_instruction.get(id_, [])
        firsts = [verdict for call in of if not isinstance(verdict := read.get(call.key, "too_long"), str)]
        if len(firsts) < len(of) or not (firsts or _is_equal(mine, theirs)):
            continue
        values = [first if call.order == MODEL_FIRST else 1 - first for call, first in zip(of, firsts, strict=True)]
        preferences[id_] = Preference(
            value=math.fsum(values) / len(values) if values else 0.5,
            category=mine.category if mine.category is not None else theirs.category,
            longer=len(mine.answers[0]) - len(theirs.answers[0]),
            difficulty=mine.difficulty if mine.difficulty is not None else theirs.difficulty,
            first_preferred=tuple(firsts),
        )
    return preferences


def _documents(
    pairs: Mapping[str, tuple[Conversation, Conversation]],
    calls: Sequence[_Call],
    rows: Mapping[str, Mapping[str, Any]],
    read: Mapping[str, float | Unreadable],
) -> Iterator[Document]:
    for call in calls:
        row = rows.get(call.key, {})
        mine, theirs = pairs[call.instruction]
        verdict = read.get(call.key, "too_long")
        facts: dict[str, Any] = {
            "instruction": call.instruction, "order": call.order, "category": mine.category,
            "first_preferred": None if isinstance(verdict, str) else verdict,
            "unreadable": verdict if isinstance(verdict, str) else None,
            "logprobs": row.get("logprobs"), "tokens": row.get("tokens"), "finish": row.get("finish"),
            "prompt": mine.turns[0], "answer": mine.answers[0], "baseline": theirs.answers[0],
        }  # fmt: skip
        metadata = {name: value for name, value in facts.items() if value is not None}
        yield Document(
            id=f"{call.instruction}/{call.order}", text=row.get("text", ""), source="judge", metadata=metadata
        )


def _samples(
    task: str, pairs: Mapping[str, tuple[Conversation, Conversation]], preferences: Mapping[str, Preference]
) -> list[dict[str, Any]]:
    rows = [
        {
            "task": task_of(task, preference.category), "doc_id": id_, "context": pairs[id_][0].turns[0],
            "target": pairs[id_][1].answers[0], "generated": pairs[id_][0].answers[0], WIN_RATE: preference.value,
        }
        for id_, preference in preferences.items()
    ]  # fmt: skip
    return sorted(rows, key=lambda row: row["task"])


def _sections(
    pairs: Mapping[str, tuple[Conversation, Conversation]],
    preferences: Mapping[str, Preference],
    rows: Mapping[str, Mapping[str, Any]],
) -> dict[str, list[Example]]:
    """Examples of wins, losses, ties and of what was not judged."""
    sections: dict[str, list[Example]] = {name: [] for name in ("Wins", "Losses", "Ties", "Not judged")}
    for id_, (mine, theirs) in pairs.items():
        preference = preferences.get(id_)
        title = id_ if preference is None else f"{id_}: preference {preference.value:.2f}"
        texts = {"instruction": mine.turns[0]}
        texts |= {"answer": mine.answers[0]} if mine.answers else {}
        texts |= {"baseline's answer": theirs.answers[0]} if theirs.answers else {}
        for order in (MODEL_FIRST, BASELINE_FIRST):
            row = rows.get(f"{order}/{id_}", {})
            texts |= {f"judge, {order.replace('_', ' ')}": row["text"]} if "text" in row else {}
        value = None if preference is None else preference.value
        name = "Not judged" if value is None else "Ties" if value == 0.5 else "Wins" if value > 0.5 else "Losses"
        sections[name].append(Example(title=title, texts=texts))
    return sections
