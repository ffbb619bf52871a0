"""Summary of an output: one phrase, printed after its state."""

from __future__ import annotations

from marin_assets.step.graph import Node
from marin_resources.storage.manifest.bytes_progress import readable_bytes
from marin_resources.storage.output.state_summary import State, state_of
from marin_resources.storage.output.store import other_version_message
from marin_resources.types.output import Observed, describe_adopted


def describe(node: Node, observed: Observed) -> str:
    """The size of a complete output, the error of a failed one, the holder of one that is computed."""
    record = observed.record
    match state_of(observed):
        case State.BLOCKED:
            return observed.damage or other_version_message(node.output, observed.path)
        case State.COMPLETE:
            manifest = record.manifest
            files = f"{manifest.files} file{'s' * (manifest.files != 1)}" if manifest else "no manifest"
            size = f"{files}, {readable_bytes(manifest.bytes or 0)}" if manifest else files
            elsewhere = describe_adopted(record)
            if not observed.adopted and observed.data_path != observed.path:
                elsewhere = ", ".join(filter(None, (f"at {observed.data_path}", elsewhere)))
            return ", ".join(filter(None, (size, str(record.finished_at or "")[:19], elsewhere)))
        case State.RUNNING:
            return f"by {observed.holder.describe()}" if observed.holder else ""
        case State.FAILED:
            return str(record.error or "was stopped")
        case State.DEAD:
            return "its worker is gone; run again to continue"
        case State.MISSING if observed.collected:
            return "collected by marin gc; a run brings it back"
    return ""
