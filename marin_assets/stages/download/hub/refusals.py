"""The hub's refusals that stay, as sentences with what to do."""

from __future__ import annotations

from marin_assets.stages.download.hub.repository import HubError, MissingEntryError, Repository


def refusal(repository: Repository, subject: str, status: int, code: str, *, has_token: bool) -> HubError:
    """The error for an answer of the hub itself. `code` is its X-Error-Code, "" if it sent none; `subject` a phrase for
    the thing that was requested."""
    kind, name = repository.kind, repository.id
    token = "the token that was sent does not open it" if has_token else "no token was sent"
    if code == "GatedRepo":
        return HubError(
            f"The {kind} {name!r} is gated, and {token} ({status}). Accept its conditions at {repository.page}, and "
            "set HF_TOKEN to a token of that user."
        )
    if code == "RepoNotFound" or (not code and status == 401):
        return HubError(
            f"The hub at {repository.endpoint!r} has no {kind} {name!r}, or it is private, and {token} ({status}). "
            "Correct the name, or set HF_TOKEN to a token of a user who may read it."
        )
    if code == "RevisionNotFound":
        return HubError(
            f"The {kind} {name!r} has no revision {subject.rpartition(' ')[2]} ({status}), expected a branch, a tag "
            f"or a commit. {repository.page}/tree/main lists its branches."
        )
    if code == "EntryNotFound":
        return MissingEntryError(f"The {kind} {name!r} has no {subject} ({status}). Correct the name.")
    if status == 403:
        return HubError(
            f"The hub refuses {subject} of the {kind} {name!r}, and {token} (403). Look at {repository.page}, and set "
            "HF_TOKEN to a token of a user who may read it."
        )
    if status == 404:
        return HubError(
            f"The hub at {repository.endpoint!r} has no {subject} of the {kind} {name!r} (404). Correct it."
        )
    return HubError(
        f"The hub {repository.endpoint!r} answered {status} for {subject} of the {kind} {name!r}, expected 200. "
        f"Look at {repository.page}."
    )
