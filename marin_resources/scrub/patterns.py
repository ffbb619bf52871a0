"""Patterns of secrets, addresses and paths in any text. Each has its replacement.

In:  a text; NUL separates texts that must not be read as one.   Out: the text without them.

A pattern rather hides too much than too little. The shapes of tokens are those that their issuers document, as GitHub's
secret scanning has them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import urlsplit

HIDDEN = "***"
ADDRESS, BUCKET, MAIL, PATH = "<address>", "<bucket>", "<e-mail>", "<path>"
SECRET_NAME = (
    r"(?<![A-Za-z])(?<!pad_)(?<!eos_)(?<!bos_)(?<!unk_)(?<!sep_)(?<!cls_)(?<!mask_)(?<!stop_)(?<!end_)(?<!start_)"
    r"(?:secrets?|passw(?:or)?d|passphrase|pwd|credentials?|(?:api|access|secret|private|auth|account|signing)[_-]?keys?"
    r"|apikey|token|webhook(?:[_-]?url)?)"
)
"""The last part of a name whose value is a secret: "password", "hf_token", "AWS_SECRET_ACCESS_KEY"; not "eos_token"."""
SECRET_FIELD = re.compile(rf"(?i)^(?:.*[._-])?{SECRET_NAME}$")
PERSON_FIELD = re.compile(r"(?i)^(?:user(?:_?name)?|login|host(?:_?name)?|e?_?mail|ip(?:_address)?|author)$")
"""Names of fields with a person or a machine."""

_END = r"[^\s\x00\"'<>]"
_START = r"(?<![A-Za-z0-9])"


@dataclass(frozen=True)
class Shape:
    """A pattern, its replacement, and texts in lower case of which one is in each of its matches: a page is long, and
    has few of them."""

    pattern: str
    replacement: str
    needles: tuple[str, ...]

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """Compiled for the first text that has a needle: all take 10 ms, and most processes scrub nothing."""
        return re.compile(self.pattern)

    def replace(self, text: str, lower: str) -> str:
        return self.compiled.sub(self.replacement, text) if any(map(lower.__contains__, self.needles)) else text


def _shape(pattern: str, replacement: str, *needles: str) -> Shape:
    return Shape(pattern, replacement, needles)


SECRETS = (
    _shape(r"-----BEGIN [A-Z0-9 ]+-----[^\x00]*?(?:-----END [A-Z0-9 ]+-----|(?=\x00)|\Z)", HIDDEN, "-----begin "),
    _shape(r"(?<![A-Za-z0-9+/=])(?:[A-Za-z0-9+/=]|\s|\\n)*-----END [A-Z0-9 ]+-----", HIDDEN, "-----end "),
    _shape(rf"{_START}(?:hf|api_org)_[A-Za-z0-9]{{6,}}", HIDDEN, "hf_", "api_org_"),
    _shape(
        rf"{_START}(?:gh[pousr]_\w{{10,}}|github_pat_\w{{10,}}|glpat-[\w-]{{10,}}|npm_\w{{20,}}|pypi-[\w-]{{20,}})",
        HIDDEN,
        *("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "npm_", "pypi-"),
    ),
    _shape(
        rf"{_START}(?:sk|pk|rk)(?:-[\w-]{{12,}}|_(?:live|test)_\w{{8,}})",
        HIDDEN,
        "sk-",
        "pk-",
        "rk-",
        "k_live",
        "k_test",
    ),
    _shape(
        rf"{_START}(?:AKIA|ASIA|AROA|AIDA|ABIA|ACCA)[0-9A-Z]{{12,}}",
        HIDDEN,
        *["akia", "asia", "aroa", "aida", "abia", "acca"],
    ),
    _shape(
        r"(?<![A-Za-z0-9/+=])(?=[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=]))"
        r"(?=[^\x00\s]{0,39}[0-9])(?=[^\x00\s]{0,39}[A-Z])(?=[^\x00\s]{0,39}[a-z])[A-Za-z0-9/+]{40}",
        HIDDEN,
        "",
    ),
    _shape(
        rf"{_START}(?:AIza[\w-]{{20,}}|ya29\.[\w.-]{{8,}}|GOCSPX-[\w-]{{8,}}|GOOG[0-9A-Z]{{10,}})",
        HIDDEN,
        *("aiza", "ya29.", "gocspx-", "goog"),
    ),
    _shape(rf"{_START}(?:xox[a-z]|xapp)-[\w-]{{8,}}", HIDDEN, "xox", "xapp-"),
    _shape(rf"{_START}eyJ[\w-]{{6,}}\.[\w-]+(?:\.[\w-]*)?", HIDDEN, "eyj"),
    _shape(
        rf"{_START}(?:wandb_v1|nvapi|gsk|r8|tskey|dckr_pat|dop_v1)[_-][\w-]{{12,}}",
        HIDDEN,
        *("wandb_v1", "nvapi", "gsk", "r8", "tskey", "dckr_pat", "dop_v1"),
    ),
    _shape(r"(?i)\bage-secret-key-1[a-z0-9]{8,}", HIDDEN, "age-secret-key-"),
    _shape(rf"{_START}\d{{8,10}}:AA[\w-]{{20,}}", HIDDEN, ":aa"),  # of a Telegram bot
    _shape(rf"{_START}SG\.[\w-]{{10,}}\.[\w-]{{10,}}", HIDDEN, "sg."),
    _shape(rf"{_START}(?:hv[bs]\.[\w-]{{16,}}|dapi[0-9a-f]{{24,}})", HIDDEN, "hvs.", "hvb.", "dapi"),
    _shape(r"\bssh-(?:rsa|dss|ed25519) [A-Za-z0-9+/=]{16,}(?: [^\s\x00]+)?", HIDDEN, "ssh-"),
    _shape(r"(?i)(\b(?:set-)?cookie:\s{0,3})[^\x00\r\n]+", rf"\1{HIDDEN}", "cookie:"),
    _shape(r"(?i)((?:^|\s)(?:-u|--user)[ =])[^\s\x00:]+:[^\s\x00]+", rf"\1{HIDDEN}", "-u", "--user"),
    _shape(
        r"(?i)([\"'](?:auth|private_key_id)[\"']\s{0,3}:\s{0,3})[\"'][^\"'\x00]*[\"']", rf"\1{HIDDEN}", "auth", "key_id"
    ),
    _shape(r"(?i)(\bauthorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?)[^\x00\r\n\"']+", rf"\1{HIDDEN}", "authorization"),
    _shape(r"(?i)\b(bearer)\s{1,3}[\w.~+/=-]{6,}", rf"\1 {HIDDEN}", "bearer"),
    _shape(r"(?i)\b(login\s+)[^\s\x00]+(\s+password\s+)[^\s\x00]+", rf"\1{HIDDEN}\2{HIDDEN}", "login"),
    _shape(
        rf"(?i)({SECRET_NAME}[\"']?\s{{0,3}}[:=]\s{{0,3}})"
        r"(?:\"[^\"\x00]*\"|'[^'\x00]*'|(?!\*\*\*)[^\s\x00\"',;&}\])<>]+)",
        rf"\1{HIDDEN}",
        *("secret", "passw", "passphrase", "pwd", "credential", "key", "auth", "token", "webhook"),
    ),
    _shape(
        r"(?i)(--(?:[\w-]*-)?(?:token|password|secret|api-key|key)[ =])[^\s\x00]+",
        rf"\1{HIDDEN}",
        *("token", "password", "secret", "key"),
    ),
    _shape(
        r"(?i)([?&](?:x-[\w-]+|sig|signature|token|key|code|access_token|awsaccesskeyid|googleaccessid)=)[^&\s\x00\"'<>]+",
        rf"\1{HIDDEN}",
        *("?", "&"),
    ),
)

_HOST_END = r"internal|local|localdomain|lan|corp|intranet|home|private|cluster|svc|test"
ADDRESSES = (
    _shape(
        r"(?i)\b((?:slurm_\w*node\w*|nodelist|host_?(?:name)?|user_?(?:name)?|logname)=)[^\s\x00,;&\"'<>]+",
        rf"\1{ADDRESS}",
        *("nodelist=", "node=", "host", "user", "logname="),
    ),
    _shape(
        r"(?i)\b((?:ssh|scp|sftp|rsync)\s[^\x00\n@]{0,200}?)(?<![\w.-])[\w.-]+@[\w.-]+",
        rf"\1{ADDRESS}",
        *("ssh", "scp", "sftp", "rsync"),
    ),
    _shape(r"(?<![\w.+%-])[\w.+%-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}\b", MAIL, "@"),
    _shape(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?:/\d{1,2})?(?::\d+)?(?![\w.]*\d)", ADDRESS, "."),
    _shape(r"\bip-\d{1,3}-\d{1,3}-\d{1,3}-\d{1,3}[\w.-]*", ADDRESS, "ip-"),
    _shape(r"(?i)(?<![\w:.])\[?(?:[0-9a-f]{1,4}:){4,7}[0-9a-f]{1,4}\]?(?:%\w+)?(?::\d+)?(?![\w:])", ADDRESS, ":"),
    _shape(
        r"(?i)(?<![\w:.])\[?(?:[0-9a-f]{1,4}:){0,6}[0-9a-f]{0,4}::(?:[0-9a-f]{1,4}:){0,6}[0-9a-f]{1,4}\]?(?:%\w+)?"
        r"(?![\w:])",
        ADDRESS,
        "::",
    ),
    _shape(r"(?i)(?<![\w:.])(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}(?![\w:-])", ADDRESS, ":", "-"),  # of a network card
    _shape(r"(?i)\blocalhost:\d+", ADDRESS, "localhost:"),
    _shape(
        rf"(?i)(?<![\w./-])[a-z0-9-]+(?:\.[a-z0-9-]+)*\.(?:{_HOST_END})(?![\w-])(?::\d+)?",
        ADDRESS,
        *(f".{end}" for end in _HOST_END.split("|")),
    ),
    _shape(
        r"(?i)(?<![\w.-])[a-z0-9-]+(?:\.[a-z0-9-]+)*\.(?:compute\.amazonaws\.com|googleusercontent\.com|cloudapp\.azure\.com)\b",
        ADDRESS,
        *("compute.amazonaws.com", "googleusercontent.com", "cloudapp.azure.com"),
    ),
    _shape(
        r"(?i)(?<![\w./-])[a-z][a-z0-9]*(?:[.-][a-z0-9]+)+"
        r"(?<!\.py)(?<!\.cc)(?<!\.cpp)(?<!\.h)(?<!\.rs)(?<!\.go)(?<!\.js):\d{2,5}(?![\w.])",
        ADDRESS,
        ":",
    ),
)

URL = re.compile(rf"(?i)(?<![a-z0-9+.-])([a-z][a-z0-9+-]*)://({_END}+)")
BUCKETS = frozenset({"gs", "gcs", "s3", "s3a", "r2", "az", "abfs", "abfss", "adl", "mirror", "hdfs"})
OF_MACHINES = re.compile(rf"(?i)(?:^|\.)(?:{_HOST_END}|localhost)$|^\d|^\[|^[^.]+$")
"""Hosts that are no public site: addresses of networks, and names without a dot."""

PACKAGES = re.compile(rf"(?<![\w/])/{_END}*?/(?:site|dist)-packages/")
LIBRARY = re.compile(rf"(?<![\w/])/{_END}*?/lib/(python3\.\d+)/")
_PART = r"[^\s\x00\"'`<>|,;:()\[\]{}/\\]"
QUOTED = re.compile(r"(?<=[\"'])(?<!\w[\"'])/[A-Za-z][^\"'\x00\n]{0,4000}(?=[\"'])")
"""A path in quotes, which may have spaces."""
HOMES = re.compile(rf"(?<!/)/+(?:home|Users)(?=/)(?:/+{_PART}+)+/?")
ABSOLUTE = re.compile(rf"(?<!\w['\"])(?<![\w/.<>*)\]%&-])(?:file:/*)?/(?!/)(?:{_PART}+/+)*{_PART}+/?")
AFTER_OPTION = re.compile(rf"(?<=-[ILDB])/(?:{_PART}+/+)*{_PART}+")
IN_URL = re.compile(
    r"(?i)(?:%2f)+(?:home|users|root|mnt|media|scratch|data|tmp|var|opt|srv|work)(?:%2f[^\s\x00%\"'<>]+)+"
)
"""A path that is quoted for a URL."""
OF_HOME = re.compile(rf"(?<![\w/])~[\w-]*(?:/+{_PART}+)+/?")
WINDOWS = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]:\\+[^\s\x00\"'<>|]+|(?<![\w\\])\\\\+[\w.$-]+\\+[^\s\x00\"'<>|]+")
FILE = re.compile(r"[\w.-]+\.(?:py|jsonl?|yaml|yml|toml|txt|md|cc?|cpp|h|rs|go|js|sh|log|zst|gz|parquet|html|csv|so)$")


def without_secrets(text: str) -> str:
    """The text without secrets of known shapes, and without values of names that hold secrets."""
    return _replace(text, SECRETS)


def without_addresses(text: str) -> str:
    """The text without URLs of machines and buckets, e-mail addresses, and addresses of networks."""
    return _replace(URL.sub(_public_url, text), ADDRESSES)


def without_paths(text: str) -> str:
    """The text without absolute paths. The name of a file of code or data stays, behind `<path>`."""
    text = LIBRARY.sub(r"\1/", PACKAGES.sub("", text))
    for pattern in (QUOTED, WINDOWS, IN_URL, HOMES, OF_HOME, AFTER_OPTION, ABSOLUTE):
        text = pattern.sub(_file_alone, text)
    return text


def _replace(text: str, shapes: Iterable[Shape]) -> str:
    lower = text.lower()
    for shape in shapes:
        text = shape.replace(text, lower)
    return text


def _public_url(match: re.Match[str]) -> str:
    scheme, rest = match[1].lower(), match[2]
    _, slash, path = rest.partition("/")
    if scheme in BUCKETS:
        return f"{BUCKET}{slash}{path}"
    if scheme == "file":
        return f"/{rest.lstrip('/')}"  # a path, which is replaced as such
    if scheme == "hf":
        return match[0]
    return match[0] if is_public(match[0]) else ADDRESS


def is_public(url: str) -> bool:
    """Whether a URL is of a public site: http(s), a domain, no port, no account, and no webhook."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    host = parts.hostname or ""
    return (
        parts.scheme.lower() in ("http", "https")
        and "@" not in parts.netloc
        and port is None
        and not OF_MACHINES.search(host)
        and "hooks" not in host.split(".")
        and "/webhook" not in parts.path.lower()
    )


def _file_alone(match: re.Match[str]) -> str:
    name = re.split(r"[/\\]+", match[0].rstrip("/\\"))[-1]
    return f"{PATH}/{name}" if FILE.fullmatch(name) and len(re.findall(r"[/\\]+", match[0])) > 1 else PATH
