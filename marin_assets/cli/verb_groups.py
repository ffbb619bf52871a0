"""The verbs of `marin`, in groups by what people want, as `marin --help` shows them.

The help fits one screen of 24 lines and 80 columns, with two verbs a line: a description has at most 26 characters,
a verb at most 11.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping

GROUPS: Mapping[str, Mapping[str, str]] = {
    "Plan and run": {
        "plan": "what would run, and why",
        "run": "compute just that",
        "materialize": "compute outputs, or reuse",
        "backfill": "let the daemon do it",
    },
    "Look": {
        "status": "complete? failed? running?",
        "list": "steps, and their paths",
        "tree": "steps, and what each reads",
        "path": "where the data of one are",
        "logs": "what an attempt printed",
        "open": "a step's page in the UI",
        "browse": "see the rows of its data",
        "explain": "why it was computed",
        "diff": "two experiments or runs",
        "cost": "what an output has cost",
        "page": "an experiment as HTML",
        "partitions": "those of a step",
        "generate": "a model continues a text",
        "speedrun": "cost and loss of trainings",
    },
    "Storage": {
        "gc": "free what nothing needs",
        "pin": "keep it, with a reason",
        "verify": "compare with manifests",
        "adopt": "data made elsewhere serve",
    },
    "Deployment": {
        "init": "a project of your own",
        "dev": "serve the UI on this host",
        "doctor": "check the settings here",
        "cluster": "Ray: jobs, logs, slices",
        "instance": "prune Dagster's old runs",
        "sync": "show Dagster the outputs",
        "metrics": "numbers for Prometheus",
        "completion": "of bash, zsh, fish",
    },
}
"""Group -> verb, which is also its file -> description. A new verb is one line here."""
VERBS = {verb: description for verbs in GROUPS.values() for verb, description in verbs.items()}
COLUMNS = 2
VERB_CHARACTERS, DESCRIPTION_CHARACTERS = 11, 26


def usage() -> str:
    """The text of `marin --help`."""
    lines = ["marin <verb> …    (the options of one: marin <verb> --help)"]
    for group, verbs in GROUPS.items():
        items = [f"{verb:{VERB_CHARACTERS}} {text:{DESCRIPTION_CHARACTERS}}" for verb, text in verbs.items()]
        rows = [items[i : i + COLUMNS] for i in range(0, len(items), COLUMNS)]
        lines += [group, *(f"  {' '.join(row)}".rstrip() for row in rows)]
    return "\n".join(lines)


def usage_of_group(command: str, verbs: Mapping[str, str]) -> str:
    """The text of `marin cluster --help`: one verb a line."""
    width = max(map(len, verbs))
    lines = (f"  {verb:{width}}  {description}" for verb, description in verbs.items())
    return "\n".join([f"{command} <verb> …", *lines])


def unknown(command: str, verb: str, verbs: Mapping[str, str]) -> str:
    """The sentence for a verb that does not exist, with the one that was likely meant."""
    got = f"got {verb!r} as the verb" if verb else "got no verb"
    near = difflib.get_close_matches(verb, verbs, 1)
    expected = f"did you mean {near[0]!r}?" if near else f"expected {_one_of(verbs)}."
    return f"{command}: {got}, {expected} See '{command} --help'."


def _one_of(names: Mapping[str, str]) -> str:
    return "one of " * (len(names) > 1) + ", ".join(map(repr, names))
