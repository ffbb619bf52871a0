"""Create the steps of conversations and preferences, from rows in any shape."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from marin_assets.defaults.data import partitions_of
from marin_assets.defaults.environment import curated
from marin_assets.stages.transform.conversations.conversations import ConversationsConfig, conversations
from marin_assets.stages.transform.conversations.preferences import PreferencesConfig, preferences
from marin_assets.stages.transform.conversations.threads import ThreadsConfig, join_threads
from marin_assets.stages.transform.json_lists import JsonListsConfig, rows_of_json_lists
from marin_assets.step.argument_check import checks_arguments
from marin_assets.step.expectation import Expectation
from marin_assets.step.step import Step
from marin_assets.step.values import ConfigError, InputName, VersionedValue, output_path_of, versioned
from marin_resources.types.near_names import expected_one_of
from marin_resources.wire.reference import reference_to

C = TypeVar("C", ConversationsConfig, PreferencesConfig, ThreadsConfig)


class KnownChats(Protocol):
    """A data set of chats or of preferences in `marin_assets.datasets`."""

    @property
    def name(self) -> str: ...

    @property
    def adapter(self) -> str: ...

    def rows(self) -> Step: ...


@checks_arguments("name", "dataset", "adapter")
def default_conversations(
    name: str | KnownChats,
    dataset: Step | InputName | KnownChats | None = None,
    *,
    adapter: Any = None,
    are_json_lists: bool = False,
    expectations: Sequence[Expectation] = (),
    **fields: Any,
) -> Step:
    """Return the step "conversations/<name>": the rows of `dataset` as conversations that training reads.

    `adapter` is the shape of the rows: a name, a shape of your own such as Columns(prompt=("question",),
    answer="reply"), or a function of a row. A data set of `marin_assets.datasets` has its own, and may be the only
    argument. With `are_json_lists`, files are one JSON list each, which become lines first: the step "rows/<name>".
    `fields` are those of ConversationsConfig, such as replacements={"<think>": ""}; each enters the version.
    """
    name, rows, own = _rows_of("default_conversations", name, dataset)
    if are_json_lists:
        rows = _lines(name, rows)
    adapter = _adapter(adapter if adapter is not None else own or "openai")
    config = ConversationsConfig(rows_path=output_path_of(rows), adapter=adapter, source=versioned(name))
    config = _with(config, fields)
    return _step(f"conversations/{name}", conversations, config, rows, expectations, "records_unaccounted")


@checks_arguments("name", "dataset", "adapter")
def default_preferences(
    name: str | KnownChats,
    dataset: Step | InputName | KnownChats | None = None,
    *,
    adapter: Any = None,
    are_json_lists: bool = False,
    expectations: Sequence[Expectation] = (),
    **fields: Any,
) -> Step:
    """Return the step "preferences/<name>": the rows of `dataset` as pairs of conversations that training reads.

    The arguments are those of `default_conversations`, `fields` those of PreferencesConfig.
    """
    name, rows, own = _rows_of("default_preferences", name, dataset)
    if are_json_lists:
        rows = _lines(name, rows)
    adapter = _adapter(adapter if adapter is not None else own or "chats")
    config = PreferencesConfig(rows_path=output_path_of(rows), adapter=adapter, source=versioned(name))
    config = _with(config, fields)
    return _step(f"preferences/{name}", preferences, config, rows, expectations, "records_unaccounted")


@checks_arguments()
def default_threads(
    name: str, dataset: Step | InputName, *, expectations: Sequence[Expectation] = (), **fields: Any
) -> Step:
    """Return the step "rows/<name>": the messages of `dataset`, such as OpenAssistant's, joined to rows of chats.

    `fields` are those of ThreadsConfig, such as languages=("en",). `default_conversations` reads its rows.
    """
    config = _with(ThreadsConfig(rows_path=output_path_of(dataset)), fields)
    return _step(f"rows/{name}", join_threads, config, dataset, expectations, "messages_unaccounted")


def _rows_of(function: str, name: Any, dataset: Any) -> tuple[str, Step | InputName, str | None]:
    """The name, the rows and the adapter of a known data set."""
    given = dataset if dataset is not None or isinstance(name, str) else name
    if not isinstance(name, str):
        name = getattr(name, "name", name)
    if not isinstance(name, str):
        raise ConfigError(f"{function} got name={name!r}, expected a text, or a data set.")
    if isinstance(given, Step | InputName):
        return name, given, None
    rows, adapter = getattr(given, "rows", None), getattr(given, "adapter", None)
    if rows is None or not isinstance(adapter, str):
        raise ConfigError(
            f"{function} got dataset={given!r:.100}, expected a step, or a data set such as chats['…'] and "
            "preferences['…'] of marin_assets.datasets."
        )
    return name, rows(), adapter


def _lines(name: str, rows: Step | InputName) -> Step:
    return _step(f"rows/{name}", rows_of_json_lists, JsonListsConfig(input_path=output_path_of(rows)), rows)


def _adapter(adapter: Any) -> Any:
    if isinstance(adapter, VersionedValue):
        return adapter
    return versioned(reference_to(adapter) if callable(adapter) else adapter)


def _with(config: C, fields: Mapping[str, Any]) -> C:
    own = {field.name for field in dataclasses.fields(config)} - {"rows_path", "output_path", "adapter"}
    for name in fields:
        if name not in own:
            raise ConfigError(f"{type(config).__name__} has no field {name!r}, {expected_one_of(name, sorted(own))}")
    changes: dict[str, Any] = {
        name: value if isinstance(value, VersionedValue) else versioned(value) for name, value in fields.items()
    }
    return dataclasses.replace(config, **changes)


def _step(
    name: str,
    fn: Callable[[Any], Any],
    config: Any,
    rows: Step | InputName,
    expectations: Sequence[Expectation] = (),
    unaccounted: str | None = None,
) -> Step:
    partitions = partitions_of(rows)
    return curated(name, fn, config, unaccounted=unaccounted, expectations=expectations, partitions=partitions)
