"""The shapes of rows: which columns a chat is in. A step's config may have one of your own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from marin_assets.documents.chats.messages import ASSISTANT, SYSTEM, USER


@dataclass(frozen=True, kw_only=True)
class Turns:
    """A column with a list of messages."""

    column: str = "messages"
    role: str = "role"
    """The key of a message's role."""
    content: str = "content"
    """The key of its text."""
    roles: dict[str, str] | None = None
    """Names of roles in the rows -> "system", "user", "assistant"; None: these names."""
    answer: str | None = None
    """A column with the text of a last answer, if the list is the prompt alone."""


@dataclass(frozen=True, kw_only=True)
class Columns:
    """A prompt and an answer, each a text in columns of their own."""

    prompt: tuple[str, ...] = ("instruction", "input")
    """Columns of the prompt. Those with a text are joined by a blank line."""
    answer: str = "output"


@dataclass(frozen=True, kw_only=True)
class PromptAndAnswer:
    """A prompt and an answer, each a text or a list of messages."""

    prompt: str = "prompt"
    answer: str = "completion"


@dataclass(frozen=True, kw_only=True)
class BestAnswer:
    """A question, and a list of answers of which one is learnt."""

    question: str = "question"
    answers: str = "answers"
    """A list of objects or of texts, or an object of lists, as columns of parquet have it."""
    text: str = "text"
    """The key of an answer's text."""
    best_by: str | None = None
    """The key of a number: the answer with the highest one is learnt, of equal ones the first. None: the first."""


Form = Turns | Columns | PromptAndAnswer | BestAnswer

SHAREGPT_ROLES: Mapping[str, str] = {
    "system": SYSTEM,
    "human": USER,
    "user": USER,
    "gpt": ASSISTANT,
    "chatgpt": ASSISTANT,
}
PAIRS = (
    ("query", "response"),
    ("problem", "generated_solution"),
    ("problem", "proof"),
    ("question", "model_answer"),
    ("question", "model_reasoning"),
    ("prompt", "gold_standard_solution"),
)
"""Columns of a prompt and of its answer."""

FORMS: Mapping[str, Form] = {
    # {"messages": [{"role": "user", "content": "…"}, …]}: OpenAI's chats; Tulu, UltraChat, SmolTalk.
    "openai": Turns(),
    # {"conversations": [{"from": "human", "value": "…"}, …]}: ShareGPT; OpenHermes, SlimOrca.
    "sharegpt": Turns(column="conversations", role="from", content="value", roles=dict(SHAREGPT_ROLES)),
    # {"instruction": "…", "context": "…", "response": "…"}: Dolly. The context, if a row has one, follows.
    "dolly": Columns(prompt=("instruction", "context"), answer="response"),
    # {"instruction": "…", "input": "…", "output": "…"}: Alpaca, and the many sets in its form.
    "alpaca": Columns(),
    # {"conversations": [{"from": "user", "value": "…"}, {"from": "assistant", …}]}: Bespoke-Stratos.
    "conversations": Turns(column="conversations", role="from", content="value"),
    # {"query": "…", "response": "…"}: MetaMathQA; and the other PAIRS, each by its two columns.
    **{f"{prompt}/{answer}": Columns(prompt=(prompt,), answer=answer) for prompt, answer in PAIRS},
    # {"prompt": "…" or [messages], "completion": "…" or [messages]}: TRL's prompts and completions.
    "prompt/completion": PromptAndAnswer(),
    # {"question": "…", "inferences": [{"completion": "…", "pass_rate": 0.9}, …]}: AceCode. The best one is the answer.
    "question/inferences": BestAnswer(answers="inferences", text="completion", best_by="pass_rate"),
    # {"question": "…", "responses": [{"response": "…"}, …]}: NaturalReasoning. The first one is the answer.
    "question/responses": BestAnswer(answers="responses", text="response"),
    # {"messages": [… the prompt], "answer": "…"}: Dolphin-R1.
    "messages/answer": Turns(answer="answer"),
}
