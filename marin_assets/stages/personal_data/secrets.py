"""Secrets in a text: keys and tokens with the marks of their issuers, private keys, passwords in addresses.

The patterns are the formats that the issuers document. A value of few different characters, or a
part of a template such as "${TOKEN}", is a placeholder and no secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

Span = tuple[int, int]

TOKEN = re.compile(
    r"(?<![A-Za-z0-9_-])(?:"
    r"(?:AKIA|ASIA)[0-9A-Z]{16}"  # AWS
    r"|gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{60,255}|glpat-[A-Za-z0-9_-]{20,64}"
    r"|xox[abeprs]-[A-Za-z0-9-]{20,250}"  # Slack
    r"|AIza[0-9A-Za-z_-]{35}|ya29\.[0-9A-Za-z_-]{30,1024}"  # Google
    r"|sk-(?:proj-|ant-(?:api\d\d-)?|svcacct-)?[A-Za-z0-9_-]{32,256}"  # OpenAI, Anthropic
    r"|[sr]k_live_[0-9A-Za-z]{24,128}|hf_[A-Za-z]{34}|npm_[A-Za-z0-9]{36}|pypi-AgE[A-Za-z0-9_-]{50,256}"
    r"|SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}|dop_v1_[a-f0-9]{64}|AGE-SECRET-KEY-1[0-9A-Z]{58}"
    r"|eyJ[A-Za-z0-9_-]{10,2048}\.eyJ[A-Za-z0-9_-]{10,8192}\.[A-Za-z0-9_-]{20,2048}"  # JSON Web Token
    r")(?![A-Za-z0-9_-])"
)
MARKS = re.compile(
    r"AKIA|ASIA|gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|AIza|ya29\.|sk-|[sr]k_live_|hf_|npm_|pypi-AgE|SG\.|dop_v1_"
    r"|AGE-SECRET|eyJ|PRIVATE KEY|://[^\s/@]{1,256}@"
)
"""A text without one of these has no secret."""
PRIVATE_KEY = re.compile(
    r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
    r"(?:(?:[\sA-Za-z0-9+/=:,.()\\]|-(?!-)){1,20000}?-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
    r"|(?:\s+[A-Za-z0-9+/=]{40,})*)"
)
PASSWORD = re.compile(r"(?<=://)[^\s/@:\"'<>]{0,128}:([^\s/@\"'<>]{3,128})@(?=[\w\[])")
PLACEHOLDER = re.compile(
    r"placeholder|your|xxxx|\*\*\*|\.\.\.|redacted|^SECRET$|^\$[{A-Z]|^%[sd(]|^%\w+%$|^\{|\}$", re.IGNORECASE
)
FEWEST_CHARACTERS = 6
"""Different characters of a token that is no placeholder."""


def secrets(text: str) -> Iterator[Span]:
    """The secrets of a text; of an address with a password, the password."""
    if not MARKS.search(text):
        return
    spans = [match.span() for match in TOKEN.finditer(text) if _is_secret(match[0])]
    spans += [match.span() for match in PRIVATE_KEY.finditer(text)]
    spans += [match.span(1) for match in PASSWORD.finditer(text) if not PLACEHOLDER.search(match[1])]
    yield from sorted(spans)


def _is_secret(token: str) -> bool:
    value = re.sub(r"^(?:[A-Za-z]{2,10}[-_.])?(?:proj-|pat_|live_|ant-|v1_)?", "", token)
    return len(set(value)) >= FEWEST_CHARACTERS and not PLACEHOLDER.search(token)
