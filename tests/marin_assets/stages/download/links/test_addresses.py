"""The one form of an address."""

from __future__ import annotations

import pytest

from marin_assets.stages.download.links.addresses import Url, canonical_url, domain_of

BASE = "http://base.example/d/p"
FORMS = {
    "http://EXAMPLE.com:80/a/../b?b=2&a=1#x": "http://example.com/b?b=2&a=1",
    "HTTPS://example.com:443": "https://example.com/",
    "https://example.com:80/": "https://example.com:80/",
    "http://example.com:8080/": "http://example.com:8080/",
    "http://example.com/?b": "http://example.com/?b",
    "http://example.com/?b&a=1;c": "http://example.com/?b&a=1;c",
    "http://example.com/a?": "http://example.com/a",
    "http://münchen.de/ü?q=ü": "http://xn--mnchen-3ya.de/%C3%BC?q=%C3%BC",
    "http://faß.de/": "http://xn--fa-hia.de/",
    "http://☃.net/": "http://xn--n3h.net/",
    "http://example.com./a": "http://example.com/a",
    "http://example.com/a b": "http://example.com/a%20b",
    "  http://example.com/a\tb\n": "http://example.com/ab",
    "http://example.com/%7euser/%2f%c3%bc": "http://example.com/~user/%2F%C3%BC",
    "http://example.com/100%": "http://example.com/100%",
    "http://example.com/%%41a/%2%41": "http://example.com/%%41a/%2%41",
    "http://example.com/%2e%2e/a/./b/..": "http://example.com/a/",
    "http://example.com/../../a": "http://example.com/a",
    "https:\\\\example.com\\a": "https://example.com/a",
    "//example.com/x": "http://example.com/x",
    "../q": "http://base.example/q",
    "?q=1": "http://base.example/d/p?q=1",
    "#part": "http://base.example/d/p",
    "": "http://base.example/d/p",
    "http://8.8.8.8/": "http://8.8.8.8/",
    "http://[2001:DB8::0:1]:8080/x": "http://[2001:db8::1]:8080/x",
    "http://a_b.example.com/": "http://a_b.example.com/",
}
REFUSED = {
    "mailto:ada@example.com": "scheme",
    "javascript:void(0)": "scheme",
    "ftp://example.com/": "scheme",
    "http://user:password@example.com/": "userinfo",
    "http://user@example.com/": "userinfo",
    "http://666.0.0.1/": "host",
    "http://0x7f.1/": "host",
    "http://2130706433/": "host",
    "http://127.1/": "host",
    "http://localhost/": "host",
    "http://example..com/": "host",
    "http://-example.com/": "host",
    "http://exa mple.com/": "host",
    "http://example.com:22/": "port",
    "http://example.com:99999/": "malformed",
    "http://[zz]/": "malformed",
    "http://example.com/\ud800": "malformed",
    "http://example.com/" + "a" * 2000: "too_long",
}


@pytest.mark.parametrize("text", FORMS, ids=range(len(FORMS)))
def test_an_address_has_one_form(text: str) -> None:
    url = canonical_url(text, BASE)
    assert isinstance(url, Url)
    assert url.url == FORMS[text]
    assert canonical_url(url.url) == url


@pytest.mark.parametrize("text", REFUSED, ids=range(len(REFUSED)))
def test_what_is_no_address_has_a_reason(text: str) -> None:
    assert canonical_url(text, BASE) == REFUSED[text]


def test_a_name_alone_is_no_address_without_a_page() -> None:
    assert canonical_url("example.com/a") == "scheme"


def test_an_origin_has_no_default_port() -> None:
    url = canonical_url("https://example.com:443/a.TAR.GZ?x=1.y")
    assert isinstance(url, Url)
    assert (url.origin, url.extension, url.target) == ("https://example.com", ".gz", "/a.TAR.GZ?x=1.y")


def test_a_domain_is_what_was_registered() -> None:
    names = ("a.b.example.co.uk", "me.github.io", "xn--mnchen-3ya.de", "8.8.8.8", "2001:db8::1", "host.unknowntld")
    domains = ["example.co.uk", "me.github.io", "xn--mnchen-3ya.de", "8.8.8.8", "2001:db8::1", "host.unknowntld"]
    assert [domain_of(name) for name in names] == domains
