"""Secrets are hidden in every printed form, wherever the bytes are cut, and no other text changes."""

from __future__ import annotations

import html
import json
import re
import time
from base64 import b64decode, b64encode, encodebytes, urlsafe_b64encode
from hashlib import sha512
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from marin_resources.ray_tpu.log.redact import Redactor, forms_of, printed, secrets_of
from marin_resources.ray_tpu.log.redact_stream import RedactedStream

TOKEN = 'hf_Zürich/+ 4"7\\'
KEY_LINES = [b64encode(sha512(bytes([i])).digest()[:48]).decode() for i in range(26)]
PEM = "\n".join(["-----BEGIN PRIVATE KEY-----", *KEY_LINES, "Zz09==", "-----END PRIVATE KEY-----", ""])


def stream_of(*values: str) -> RedactedStream:
    return RedactedStream(map(printed, forms_of(values)))


def test_the_values_of_variables_that_are_set() -> None:
    environ = {"HF_TOKEN": "hf_abc", "EMPTY": "", "OTHER": "x"}
    assert secrets_of(["HF_TOKEN", "EMPTY", "UNSET"], environ) == ["hf_abc"]


@pytest.mark.parametrize(
    "form",
    [
        TOKEN,
        quote(TOKEN),
        quote(TOKEN, safe=""),
        quote_plus(TOKEN),
        json.dumps(TOKEN)[1:-1],
        json.dumps(TOKEN, ensure_ascii=False)[1:-1],
        repr(TOKEN)[1:-1],
        repr(TOKEN.encode())[2:-1],
        re.sub("%..", lambda found: found[0].lower(), quote(TOKEN, safe="")),
        html.escape(TOKEN),
        html.escape(TOKEN, quote=False),
        TOKEN.encode().hex(),
        TOKEN.encode().hex().upper(),
        "".join(f"%{byte:02X}" for byte in TOKEN.encode()),
        "".join(f"&#{ord(character)};" for character in TOKEN),
        "".join(f"&#x{ord(character):x};" for character in TOKEN),
        b64encode(TOKEN.encode()).decode(),
        urlsafe_b64encode(TOKEN.encode()).decode(),
    ],
)
def test_a_secret_is_hidden_in_every_form(form: str) -> None:
    stream = stream_of(TOKEN)
    assert Redactor([TOKEN]).text(f"Authorization: {form}!") == "Authorization: ***!"
    assert stream.feed(f"Authorization: {form}!".encode()) + stream.flush() == b"Authorization: ***!"


@pytest.mark.parametrize("user", ["", "a", "an", "ann", "annabel"])
@pytest.mark.parametrize("after", ["", ";", ";x", ";xy"])
def test_no_part_of_a_secret_can_be_read_from_base64_at_any_position(user: str, after: str) -> None:
    secret = "sk-live-0123456789-ABCDEF"
    shown = Redactor([secret]).text(f"Authorization: Basic {b64encode(f'{user}:{secret}{after}'.encode()).decode()}")
    assert "***" in shown
    left = shown.partition("Basic ")[2].replace("***", "").rstrip("=")
    readable = [b64decode(left[at : at + (len(left) - at) // 4 * 4]) for at in range(4)]
    assert not any(secret[at : at + 3].encode() in text for text in readable for at in range(len(secret) - 2))


def test_a_long_secret_is_hidden_across_the_lines_of_one_write() -> None:
    key = "k" + "0123456789abcdef" * 12
    wrapped = encodebytes(f"user:{key}".encode()).decode()
    assert wrapped.count("\n") > 2
    shown = Redactor([key]).text(f"<{wrapped}>")
    assert shown.startswith("<dXNlcjpr"[:6])
    assert len(shown) < 20
    assert Redactor([key]).text(f"{key[:40]}\r\n{key[40:]}\nnext") == "***\nnext"
    assert Redactor(["abcdefgh"]).text("abcd\nefgh") == "abcd\nefgh", "a short one may be two words"


def test_of_a_key_each_line_is_hidden_also_inside_json() -> None:
    redactor = Redactor([PEM])
    assert redactor.text(f"<{PEM}>") == "<***>"
    assert redactor.text(f"<{PEM.strip()}>") == "<***>"
    account = json.dumps({"type": "service_account", "private_key": PEM})
    assert not any(line in Redactor([account]).text("\n".join(PEM.splitlines())) for line in KEY_LINES)
    shown = redactor.text("\n".join(f"12:00 INFO {line}" for line in PEM.splitlines()))
    assert not any(line in shown for line in KEY_LINES)
    assert shown.count("12:00 INFO ***") == len(KEY_LINES) + 2


def test_a_short_value_is_no_secret() -> None:
    assert Redactor(["yes", ""]).text("yes, and no") == "yes, and no"
    assert Redactor(["true"]).text("it is true") == "it is ***"


def test_the_longest_of_several_is_hidden_and_of_overlapping_ones_no_end_is_left() -> None:
    assert Redactor(["abcd", "abcdef"]).text("abcdefg") == "***g"
    assert Redactor(["abcd", "cdefgh"]).text("-abcdefgh-") == "-***-"
    assert Redactor(["abcd"]).text("abcdabcd") == "******"


def test_json_is_redacted_in_keys_and_values_and_keeps_all_of_them() -> None:
    redactor = Redactor(["secret1", "secret2"])
    assert redactor.json({"secret1": 1, "secret2": [None, True, "a secret1", ("secret2",)], 3: {"x": "ok"}}) == {
        "***": 1,
        "****": [None, True, "a ***", ["***"]],
        3: {"x": "ok"},
    }


def test_only_what_may_be_the_beginning_of_a_secret_is_held_back() -> None:
    stream = stream_of("hf_secret")
    assert stream.feed(b"loading... hf_sec") == b"loading... "
    assert stream.feed(b"ond\nh") == b"hf_second\n"
    assert stream.feed(b"f_secret") == b"***"
    assert stream.feed(b"hf_") == b""
    assert stream.flush() == b"hf_"


def test_a_variable_that_is_not_utf8_is_hidden() -> None:
    value = b"\xffabc\xfe".decode(errors="surrogateescape")
    stream = stream_of(value)
    assert stream.feed(b"<\xffabc\xfe>") + stream.flush() == b"<***>"
    assert Redactor([value]).text(f"<{value}>") == "<***>"
    assert Redactor(["\ud800abc"]).text("\ud800 \ud800abc") == "\ud800 ***"


short = st.text(alphabet="ab\n-", min_size=4, max_size=12)


@settings(deadline=None)  # a busy machine is slow at times
@given(st.lists(short, max_size=4), st.text(alphabet="ab\n-", max_size=60), st.data())
@example(["abab"], "abababab", None)
def test_where_the_bytes_are_cut_makes_no_difference(values: list[str], text: str, data: st.DataObject | None) -> None:
    whole = Redactor(values).text(text)
    stream, shown, rest = stream_of(*values), b"", text.encode()
    while rest:
        cut = data.draw(st.integers(1, 9)) if data else 1
        shown += stream.feed(rest[:cut])
        rest = rest[cut:]
    assert (shown + stream.flush()).decode() == whole
    assert not any(form in left for left in whole.split("***") for form in forms_of(values))


@settings(deadline=None)
@given(st.text(max_size=200))
def test_what_holds_no_secret_is_left_as_it_is(text: str) -> None:
    redactor = Redactor([TOKEN, PEM])
    assert redactor.text(text) == text
    assert redactor.json([text]) == [text]


@pytest.mark.parametrize("values", [["a" * 3000], [PEM]])
def test_the_time_is_linear_in_the_text(values: list[str]) -> None:
    def seconds(data: bytes) -> float:
        stream, started = stream_of(*values), time.process_time()
        for at in range(0, len(data), 65536):
            stream.feed(data[at : at + 65536])
        return time.process_time() - started

    line = b"a" * 2999 + b"b" + "\n".join(KEY_LINES)[:-1].encode()
    once = max(seconds(line * 100), 0.01)
    assert seconds(line * 400) < 12 * once


def test_forms_are_few() -> None:
    assert len(forms_of([PEM])) < 200
    assert len(forms_of(["plain", " \n "])) < 20
