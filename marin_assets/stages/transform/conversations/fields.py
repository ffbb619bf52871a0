"""The fields that both stages have, and their checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from marin_assets.documents.chats.messages import ASSISTANT, ROLES, SYSTEM, TOOL, TOOL_CALL, USER, Rules
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.types.errors import MarinError
from marin_resources.types.near_names import expected_one_of
from marin_resources.wire.reference import UnimportableError, load

ALL = "all"
DEFAULT_ROLES: Mapping[str, str] = {
    **{name: SYSTEM for name in ("system", "developer")},
    **{name: USER for name in ("user", "human", "prompter")},
    **{name: ASSISTANT for name in ("assistant", "gpt", "chatgpt", "model", "bot")},
    **{name: TOOL for name in ("tool", "function", "observation", "function_response", "tool_response")},
    **{name: TOOL_CALL for name in ("function_call", "tool_call")},
}
"""Names of roles, in lower case, of OpenAI, ShareGPT, OpenAssistant, Gemma, Glaive and Hermes."""
CHOICES = {
    "alternation": ("reject", "merge", "keep"),
    "end": ("reject", "cut", "keep"),
    "tools": ("keep", "reject"),
    "duplicates": ("reject", "keep"),
}


class ConversationError(MarinError, ValueError):
    """An invalid config, or rows with too few conversations: one sentence."""


@dataclass(frozen=True, kw_only=True)
class RowFields:
    """The fields that both stages have."""

    rows_path: str
    """A folder of files of rows, or one file."""
    output_path: str = THIS_OUTPUT_PATH
    source: str = versioned("")
    """The `source` of every document."""
    id_column: str | None = versioned(None)
    """The column of the rows' ids, texts or integers; None: a hash of the messages, so equal ones have equal ids."""
    metadata_columns: tuple[str, ...] | str = versioned(())
    """Columns to keep as metadata, or "all" that are not read."""
    system_column: str = versioned(SYSTEM)
    """The column with the text of a system message before the first message."""
    roles: dict[str, str] = field(default_factory=lambda: versioned(dict(DEFAULT_ROLES)))
    """Names of roles in the rows, in any case -> "system", "user", "assistant", "tool", or "tool_call" for a message of
    the assistant that is a call as JSON. Ours are names too. A row with another name is rejected as unknown_role."""
    tools: str = versioned("keep")
    """Calls, definitions and results of tools: "keep", or "reject" their rows as tool_calls."""
    tools_column: str = versioned("tools")
    """The column of the definitions of tools: a list, or the text of one."""
    replacements: dict[str, str] = field(default_factory=lambda: versioned({}))
    """Text -> what takes its place in every message, such as {"<think>": "<|start_think|>"}. The longest one counts
    where several begin, and a replacement is not replaced again."""
    alternation: str = versioned("reject")
    """Messages that do not alternate between user and assistant: "reject" their row, "merge" neighbours of one role
    with a blank line between, or "keep" them as they are."""
    end: str = versioned("reject")
    """Messages behind the last answer: "reject" their row, "cut" them off, or "keep" them."""
    duplicates: str = versioned("reject")
    """Rows whose messages equal those of an earlier one: "reject" or "keep"."""
    max_rejected_fraction: float = versioned(0.5)
    """Largest share of rejected rows, without duplicates. Above it the stage fails: a wrong adapter must not lose a
    data set."""
    max_damaged_fraction: float = versioned(0.001)
    """Largest share of lines that are no row. Above it the stage fails."""

    def rules(self) -> Rules:
        """Return how turns become messages."""
        names = {role: role for role in (*ROLES, TOOL)} | {
            name.strip().lower(): role for name, role in self.roles.items()
        }
        return Rules(
            roles=names,
            any_case=True,
            tools=self.tools == "keep",
            drop_empty_system=True,
            require_answer=False,
            system_column=self.system_column,
        )


def check_fields(config: RowFields, names: Mapping[str, Any]) -> None:
    """Raise ConversationError for values that no rows could be read with. `names` are those of the adapters."""
    for name, expected in CHOICES.items():
        if (value := getattr(config, name)) not in expected:
            raise ConversationError(f"{name} is {value!r}, {expected_one_of(value, expected)}")
    for name in ("max_rejected_fraction", "max_damaged_fraction"):
        if not 0 <= getattr(config, name) <= 1:
            raise ConversationError(f"{name} is {getattr(config, name)!r}, expected a fraction from 0 to 1.")
    if isinstance(config.metadata_columns, str) and config.metadata_columns != ALL:
        raise ConversationError(
            f"metadata_columns is {config.metadata_columns!r}, expected names in a tuple, or {ALL!r}."
        )
    for name, role in config.roles.items():
        if role not in (*ROLES, TOOL, TOOL_CALL):
            raise ConversationError(
                f"roles has {name!r} for {role!r}, {expected_one_of(role, (*ROLES, TOOL, TOOL_CALL))}"
            )
    if "" in config.replacements:
        raise ConversationError("replacements has an empty text, expected the texts to replace. Leave it out.")
    _check_adapter(config.adapter, names)  # type: ignore[attr-defined]


def _check_adapter(adapter: Any, names: Mapping[str, Any]) -> None:
    if not isinstance(adapter, str) or adapter in names:
        return
    if ":" not in adapter:
        raise ConversationError(
            f"adapter is {adapter!r}, {expected_one_of(adapter, names)} A function of your own is 'module:function'."
        )
    function_of(adapter)


def function_of(reference: str) -> Any:
    """Return the function of "module:function". Raises ConversationError if it cannot be imported."""
    try:
        function = load(reference)
    except (ImportError, UnimportableError, ValueError) as error:
        raise ConversationError(
            f"adapter is {reference!r}, which cannot be imported ({error}). Name a function at the top level of a "
            "module."
        ) from error
    if not callable(function):
        raise ConversationError(
            f"adapter is {reference!r}, which is no function but {function!r:.60}. Name a function."
        )
    return function
