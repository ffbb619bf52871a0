"""Marin's options of a script (`executor_main`), in the form that its users type.

--dry_run True              --dry-run
--force_run_failed True     nothing: a step whose last attempt failed runs
--run_only '["a", "b"]'     --run-only a --run-only b

Underscores and hyphens are the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from marin_assets.run.options import OptionError

SWITCHES: Mapping[str, bool] = {"true": True, "false": False}
LACKING: Mapping[str, str] = {
    "--executor-info-base-path": "the record of an experiment is below the prefix, in experiments/",
    "--config-path": "a script has no file of options. Write them on the command line",
}
"""Option of Marin's -> what is so here."""


def in_our_form(arguments: Sequence[str]) -> list[str]:
    """The arguments of a script, with ours in place of Marin's. Raises OptionError for one that has no place here."""
    own, remaining = [], list(arguments)
    while remaining:
        argument = remaining.pop(0)
        name, equals, text = argument.partition("=")
        option = name.replace("_", "-")
        if option in LACKING:
            raise OptionError(f"{name} is an option of Marin's that no script has here: {LACKING[option]}.")
        if option not in ("--dry-run", "--force-run-failed"):
            own.append(argument)
            continue
        if not equals:
            text = remaining.pop(0) if remaining and remaining[0].lower() in SWITCHES else "true"
        if text.lower() not in SWITCHES:
            raise OptionError(f"{name} got {text!r}, expected True or False, or no value.")
        is_on = SWITCHES[text.lower()]
        if option == "--dry-run":
            own += ["--dry-run"] if is_on else []
        elif not is_on:
            raise OptionError(
                f"{name} is {text}, and a script computes a step whose last attempt failed. To leave it, run the "
                "script with `marin run SCRIPT --no-force-run-failed`."
            )
    return own


def run_only_patterns(text: str) -> list[str]:
    """The patterns of one --run-only: itself, or those of Marin's form of a list, '["tokenized", "checkpoints"]'."""
    if text.startswith("[") and text.endswith("]"):
        import yaml  # 10 ms; Marin's parser reads YAML

        try:
            patterns = yaml.safe_load(text)
        except yaml.YAMLError:  # a regular expression such as [ab]c[de]
            return [text]
        if isinstance(patterns, list) and patterns and all(isinstance(pattern, str) for pattern in patterns):
            return patterns
    return [text]
