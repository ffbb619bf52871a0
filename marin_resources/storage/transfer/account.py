"""The account: the step that transfers between regions are charged to. Environment variables pass it to all processes.

MARIN_STEP_NAME            the step, for error sentences
MARIN_STEP_OUTPUT          its output path; the ledger is stored there, in .marin/transfers.json
MARIN_STEP_ATTEMPT         the attempt; reservations of an earlier attempt no longer count
MARIN_MIRROR_BUDGET_BYTES  the bytes that the step may move, in all its processes together
MARIN_PREFIX               the prefix that the step writes to: the local region

MARIN_MIRROR_BUDGET_GB     the budget of a step that sets none, and of a process outside any step; 10 if not set
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from marin_resources.configuration.settings import SettingError

BUDGET_GB = "MARIN_MIRROR_BUDGET_GB"
DEFAULT_BUDGET_GB = 10.0
GB_BYTES = 10**9


@dataclass(frozen=True, kw_only=True)
class Account:
    step: str
    output_path: str
    prefix: str
    attempt: int
    budget_bytes: int

    def variables(self) -> dict[str, str]:
        return {
            "MARIN_STEP_NAME": self.step,
            "MARIN_STEP_OUTPUT": self.output_path,
            "MARIN_STEP_ATTEMPT": str(self.attempt),
            "MARIN_MIRROR_BUDGET_BYTES": str(self.budget_bytes),
            "MARIN_PREFIX": self.prefix,
        }


def current_account() -> Account | None:
    """The account of the step that this process works for; None outside any step."""
    env = os.environ
    if not env.get("MARIN_STEP_OUTPUT"):
        return None
    return Account(
        step=env["MARIN_STEP_NAME"],
        output_path=env["MARIN_STEP_OUTPUT"],
        prefix=env["MARIN_PREFIX"],
        attempt=int(env["MARIN_STEP_ATTEMPT"]),
        budget_bytes=int(env["MARIN_MIRROR_BUDGET_BYTES"]),
    )


@contextmanager
def charged_to(account: Account | None) -> Iterator[None]:
    """Charge transfers in the block to this account, in the whole process and its children. None changes nothing.

    A process works for one step at a time.
    """
    variables = account.variables() if account else {}
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})


def default_budget_bytes() -> int:
    """The budget of a step that sets none, in bytes. Raises SettingError."""
    text = os.environ.get(BUDGET_GB) or str(DEFAULT_BUDGET_GB)
    try:
        budget_gb = float(text)
    except ValueError:
        budget_gb = -1.0
    if not 0 <= budget_gb < float("inf"):
        raise SettingError(f"{BUDGET_GB} is {text!r}, expected a number of GB, such as 10.")
    return round(budget_gb * GB_BYTES)
