"""Have a model grade answers from 1 to 10, turn by turn.

In:  conversations with the answers of a model (`conversations.py`); the folder of the judge's Hugging Face export.
Out: `judgements.jsonl.zst`, documents: each judgement, whose text is the judge's; `samples.jsonl`, a row for each
     grade; `scores.csv`; `judgements.html`, to read them.

The form of MT-bench's single answers (Zheng et al. 2023, arXiv:2306.05685): the judge reads the conversation up to the
answer, with reference answers if the instruction has some, reasons, and ends with its grade as [[7]] (`verdict.py`). A
prompt that does not fit in the judge's window is not cut: its answer is not graded, and is counted. A killed step
resumes after the judgements it has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from marin_assets.documents import Document
from marin_assets.inference.engine import Endpoint, Engine
from marin_assets.stages.judge.conversations import Conversation, JudgeError, read_conversations
from marin_assets.stages.judge.model_calls import open_model, remove_journal, require_model
from marin_assets.stages.judge.output_files import task_of, write_judgements
from marin_assets.stages.judge.page import Example, page_of_judgements
from marin_assets.stages.judge.prompt import JudgePrompt
from marin_assets.stages.judge.verdict import UNREADABLE, Unreadable, grade_of
from marin_assets.stages.judge.win_rates import mean_scores
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources

KINDS = ("jax", "html")

GRADE = "grade"
BEFORE = """Grade the last answer of the assistant in this conversation. A good answer is correct, helpful, to the \
point and as detailed as the user needs. Its length alone does not count.

### Conversation
{conversation}

"""
REFERENCES = """### Right answers
{reference}

"""
TASK = """### Task
Give your reasons in a few sentences, and name what is wrong. Then end with your grade alone on the last line, a \
number from 1 to 10 in double brackets, such as [[5]]."""
PROMPT, REFERENCE_PROMPT = BEFORE + TASK, BEFORE + REFERENCES + TASK


@dataclass(frozen=True, kw_only=True)
class GradeAnswersConfig:
    answers_path: str
    """Conversations with the answers of the model."""
    judge_path: str | None
    """Folder of a Hugging Face export, with a chat template; None: an endpoint's model, which gets messages."""
    output_path: str = THIS_OUTPUT_PATH
    prompt: str = versioned(PROMPT)
    """The judge's prompt, with {conversation}."""
    reference_prompt: str = versioned(REFERENCE_PROMPT)
    """That of an instruction with reference answers, with {conversation} and {reference}."""
    system_prompt: str | None = versioned(None)
    """The system's turn before it."""
    max_tokens: int = versioned(512)
    """Most tokens of a judge's text."""
    task: str = versioned("grades")
    """Name of the task in the scores."""
    engine: Engine | Endpoint | None = None
    """Engine of the judge: our JAX model in this process if None."""
    save_every_s: float | None = None
    """Interval between two saves of judgements; None: as short as writing takes 2 % of the time."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _checked, name)


@dataclass(frozen=True, kw_only=True)
class _Answer:
    """An answer to grade."""

    conversation: Conversation
    turn: int
    """From 0."""

    @property
    def key(self) -> str:
        return f"{self.conversation.id}/{self.turn + 1}"

    @property
    def text(self) -> str:
        """The conversation up to the answer."""
        messages = self.conversation.messages_to(self.turn, self.conversation.answers)
        messages.append({"role": "assistant", "content": self.conversation.answers[self.turn]})
        return "\n\n".join(f"{message['role'].capitalize()}: {message['content']}" for message in messages)

    @property
    def references(self) -> str:
        """The reference answers to the turns up to it."""
        return "\n\n".join(self.conversation.references[: self.turn + 1])


def grade_answers(config: GradeAnswersConfig) -> dict[str, Any]:
    """Grade.

    Returns grade, the mean with grade_stderr, of which the turns of an instruction are one group; answers, judgements,
    graded, unreadable, each unreadable_<reason>, unreadable_share; too_long, unanswered (turns without an answer),
    instructions, ungraded_share; scores, by task, turn and category. A number that the judgements do not give is left
    out. Raises JudgeError for an instruction that occurs twice, no answers, a judge without a chat template;
    ModelError, EngineError.
    """
    plain, with_reference = _checked(config)
    conversations = read_conversations(config.answers_path).values()
    answers = [_Answer(conversation=of, turn=turn) for of in conversations for turn in range(len(of.answers))]
    if not answers:
        raise JudgeError(
            f"No conversation below {config.answers_path!r} has an answer. Give the output of answer_instructions."
        )
    with open_model(config.engine, config.judge_path, config.output_path, config.save_every_s) as judge:
        chats: dict[str, list[dict[str, str]]] = {}
        for answer in answers:
            prompt = with_reference if answer.references else plain
            text = prompt.render({"conversation": answer.text, "reference": answer.references})
            system = [{"role": "system", "content": config.system_prompt}] if config.system_prompt else []
            chats[answer.key] = [*system, {"role": "user", "content": text}]
        judge.complete(prompts := judge.prompts(chats, config.max_tokens))
        rows = {key: judge.rows[key] for key in prompts}
    verdicts = {key: grade_of(row["text"]) for key, row in rows.items()}
    grades = {key: verdict for key, verdict in verdicts.items() if not isinstance(verdict, str)}
    graded = [answer for answer in answers if answer.key in grades]
    scores = _scores(config.task, graded, grades)
    numbers = _counts(conversations, answers, verdicts)
    write_judgements(
        config.output_path,
        (_document(answer, rows.get(answer.key, {}), verdicts.get(answer.key, "too_long")) for answer in answers),
        _samples(config.task, graded, grades),
        scores,
        page_of_judgements(scores, numbers, _sections(answers, grades, rows)),
    )
    remove_journal(config.output_path)
    of_all = {name: value for name, value in scores.get(config.task, {}).items() if name != "instances"}
    return {**of_all, **numbers, "scores": scores}


def _checked(config: GradeAnswersConfig) -> tuple[JudgePrompt, JudgePrompt]:
    if config.max_tokens < 1:
        raise JudgeError(f"GradeAnswersConfig has max_tokens={config.max_tokens!r}, expected at least 1.")
    require_model(config.judge_path, config.engine)
    if not config.task or config.task.startswith("/"):
        raise JudgeError(f"task is {config.task!r}, expected the name of a task, such as 'grades'.")
    return JudgePrompt(config.prompt, ["conversation"]), JudgePrompt(
        config.reference_prompt, ["conversation", "reference"]
    )


def _scores(task: str, graded: Sequence[_Answer], grades: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Scores of all answers, and by turn and category."""
    groups: dict[str, list[_Answer]] = {task: list(graded)}
    for answer in graded:
        groups.setdefault(f"{task}/turn {answer.turn + 1}", []).append(answer)
    for answer in sorted(graded, key=lambda answer: answer.conversation.category or ""):
        if answer.conversation.category is not None:
            groups.setdefault(task_of(task, answer.conversation.category), []).append(answer)
    return {
        name: {
            "instances": len(of),
            **mean_scores(GRADE, [grades[answer.key] for answer in of], [answer.conversation.id for answer in of]),
        }
        for name, of in groups.items()
        if of
    }


def _counts(
    conversations: Iterable[Conversation], answers: Sequence[_Answer], verdicts: Mapping[str, float | Unreadable]
) -> dict[str, float]:
    reasons = Counter(verdict for verdict in verdicts.values() if isinstance(verdict, str))
    turns = [len(conversation.turns) for conversation in conversations]
    graded = len(verdicts) - reasons.total()
    return {
        "answers": len(answers),
        "judgements": len(verdicts),
        "graded": graded,
        "unreadable": reasons.total(),
        **{f"unreadable_{reason}": reasons[reason] for reason in UNREADABLE if reasons[reason]},
        "unreadable_share": reasons.total() / max(len(verdicts), 1),
        "too_long": len(answers) - len(verdicts),
        "unanswered": sum(turns) - len(answers),
        "instructions": len(turns),
        "ungraded_share": 1 - graded / sum(turns),
    }


def _document(answer: _Answer, row: Mapping[str, Any], verdict: float | str) -> Document:
    facts: dict[str, Any] = {
        "instruction": answer.conversation.id, "turn": answer.turn + 1, "category": answer.conversation.category,
        GRADE: None if isinstance(verdict, str) else verdict,
        "unreadable": verdict if isinstance(verdict, str) else None,
        "tokens": row.get("tokens"), "finish": row.get("finish"), "conversation": answer.text,
        "reference": answer.references or None,
    }  # fmt: skip
    metadata = {name: value for name, value in facts.items() if value is not None}
    return Document(id=answer.key, text=row.get("text", ""), source="judge", metadata=metadata)


def _samples(task: str, graded: Iterable[_Answer], grades: Mapping[str, float]) -> list[dict[str, Any]]:
    """A row for each grade. The turns of an instruction are a passage: their grades are alike."""
    rows = [
        {
            "task": task_of(task, answer.conversation.category), "doc_id": answer.key,
            "passage": answer.conversation.id, "target": answer.references,
            "context": "\n\n".join(answer.conversation.turns[: answer.turn + 1]),
            "generated": answer.conversation.answers[answer.turn], GRADE: grades[answer.key],
        }
        for answer in graded
    ]  # fmt: skip
    return sorted(rows, key=lambda row: str(row["task"]))


def _sections(
    answers: Sequence[_Answer], grades: Mapping[str, float], rows: Mapping[str, Mapping[str, Any]]
) -> dict[str, list[Example]]:
    """The best and the worst answers, and those without a grade."""
    best = sorted((answer for answer in answers if answer.key in grades), key=lambda answer: -grades[answer.key])
    half = (len(best) + 1) // 2
    sections = {
        "Higher grades": best[:half],
        "Lower grades": best[half:][::-1],
        "Not graded": [answer for answer in answers if answer.key not in grades],
    }

    def example(answer: _Answer) -> Example:
        grade = f": grade {grades[answer.key]:g}" if answer.key in grades else ""
        texts = {
            "conversation": answer.text,
            "reference": answer.references,
            "judge": rows.get(answer.key, {}).get("text"),
        }
        return Example(title=f"{answer.key}{grade}", texts={name: text for name, text in texts.items() if text})

    return {name: list(map(example, of)) for name, of in sections.items()}
