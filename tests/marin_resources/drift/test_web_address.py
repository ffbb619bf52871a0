"""The web page of a commit: of remotes as people write them, without their accounts."""

from __future__ import annotations

import pytest

from marin_resources.drift.web_address import page_of_commit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("remote", "page"),
    [
        ("https://github.com/lab/project.git", f"https://github.com/lab/project/commit/{COMMIT}"),
        ("https://user:secret@github.com/lab/project", f"https://github.com/lab/project/commit/{COMMIT}"),
        ("git@github.com:lab/project.git", f"https://github.com/lab/project/commit/{COMMIT}"),
        ("ssh://git@gitlab.com:22/lab/group/project.git/", f"https://gitlab.com/lab/group/project/-/commit/{COMMIT}"),
        ("https://bitbucket.org/lab/project", f"https://bitbucket.org/lab/project/commits/{COMMIT}"),
        ("git@git.lab.internal:lab/project.git", None),
        ("https://github.com.evil.org/lab/project", None),
        ("/srv/git/project.git", None),
        ("../project", None),
        ("", None),
    ],
)
def test_the_page_of_a_commit_is_that_of_a_known_host(remote: str, page: str | None) -> None:
    assert page_of_commit(remote, COMMIT) == page
