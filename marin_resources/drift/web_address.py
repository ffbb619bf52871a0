"""The web page of a commit of a step's code, if the repository's remote is on a known host.

In:  a function, and a commit of its repository.   Out: "https://github.com/lab/project/commit/<commit>", or None.
"""

from __future__ import annotations

import os
import re
import subprocess
from functools import cache

from marin_resources.drift.provenance import WITHOUT, repository_of_code

COMMITS = {
    "github.com": "commit",
    "gitlab.com": "-/commit",
    "codeberg.org": "commit",
    "bitbucket.org": "commits",
}
"""Host -> the folder of commits below the page of a repository."""
REMOTE = re.compile(
    r"(?:(?:https?|ssh|git)://)?(?:[^@/\s]+@)?(?P<host>[\w.-]+)(?::\d+(?=/))?[:/](?P<path>[\w.~-]+(?:/[\w.~-]+)+?)"
    r"/?"
)
"""A remote of git: an address, or "git@host:lab/project.git". Its account and password are no part of the page."""


def web_page_of_commit(function: str, commit: str) -> str | None:
    """The page of the commit in the repository that `provenance(function)` describes; None without a known host."""
    repository = repository_of_code(function)
    remote = None if repository is None else _remote(repository)
    return None if remote is None else page_of_commit(remote, commit)


def page_of_commit(remote: str, commit: str) -> str | None:
    """The page of a commit on the host of this remote; None for a host that is not known."""
    match = REMOTE.fullmatch(remote.strip())
    host = match["host"].lower() if match else ""
    if match is None or host not in COMMITS:
        return None
    return f"https://{host}/{match['path'].removesuffix('.git')}/{COMMITS[host]}/{commit}"


@cache
def _remote(repository: str) -> str | None:
    """The address of the remote "origin"; None without git or such a remote."""
    env = {name: value for name, value in os.environ.items() if name not in WITHOUT}
    command = ["git", "-C", repository, "remote", "get-url", "origin"]
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, errors="replace", timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
