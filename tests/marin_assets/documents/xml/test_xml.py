"""XML of foreign origin: its elements, its inline text, and what is refused."""

from __future__ import annotations

import pytest

from marin_assets.documents.xml.inline import inline_text
from marin_assets.documents.xml.parse import BadXmlError, elements, parsed


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("a<i>b</i>c", "abc"),
        ("H<sub>2</sub>O, CO<sub>2 </sub>and x<sup> n+1</sup>", "H_2O, CO_2 and x ^(n+1)"),
        ("the 1<sup>st</sup>, <sup>13</sup>C, a<sup>b<sub>c</sub></sup>", "the 1st, ^13C, a^b_c"),
        ("<sup>13</sup>C", "13C"),
        ("a<!-- x -->b<?y z?>c &amp; &lt;", "abc & <"),
        (" a\n\tb ", "a b"),
        ('<m:math xmlns:m="http://www.w3.org/1998/Math/MathML"><m:mfrac><m:mi>a</m:mi><m:mi>b</m:mi></m:mfrac></m:math>',
         "a/b"),
        ('<math><semantics><mi>x</mi><annotation encoding="application/x-tex">\\chi</annotation></semantics></math>.',
         "$\\chi$."),
    ],
    ids=["markup", "blanks", "raised", "first", "comments", "lines", "linear", "tex"],
)  # fmt: skip
def test_the_inline_text_of_an_element_is_readable(content: str, text: str) -> None:
    assert inline_text(parsed(f"<p>{content}</p>")) == text


def test_names_of_html_that_the_document_type_would_declare_are_resolved() -> None:
    root = parsed(b'<!DOCTYPE a PUBLIC "x" "x.dtd"><a>&alpha;<b/>&nbsp;c&beta;</a>')
    assert "".join(root.itertext()) == "α\xa0cβ"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("<a>", "bad_xml"),
        ("", "bad_xml"),
        ("<a>&owl;</a>", "bad_xml"),
        ('<!DOCTYPE a SYSTEM "x.dtd"><a>&owl;</a>', "bad_xml"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><a/>', "entities"),
        ('<!DOCTYPE a [<!ENTITY b SYSTEM "/etc/passwd">]><a>&b;</a>', "entities"),
        ('<!DOCTYPE a [<!ENTITY % b SYSTEM "/etc/passwd"> %b;]><a/>', "entities"),
        ("<a>" * 101 + "</a>" * 101, "too_deep"),
        ("<a>" * 5000 + "</a>" * 5000, "too_deep"),
    ],
    ids=["cut", "empty", "undeclared", "unknown", "internal", "external", "parameter", "deep", "deeper"],
)
def test_other_xml_has_a_reason(content: str, reason: str) -> None:
    with pytest.raises(BadXmlError) as error:
        parsed(content)
    assert error.value.reason == reason


def test_elements_of_a_stream_are_alone_in_memory() -> None:
    chunks = (f"<x><y>{n}</y><junk/></x><x2/>".encode() for n in range(500))
    stream = elements((b"<all>", *chunks, b"</all>"), ("x",), root="all", most_bytes=1000)
    for number, element in enumerate(stream):
        assert element.findtext("y") == str(number)
        assert len(element.getparent()) <= 4


def test_the_elements_before_a_damage_are_read() -> None:
    stream = elements([b"<all><x>1</x><x>2</x><x>3</"], ("x",), root="all", most_bytes=1000)
    assert [next(stream).text, next(stream).text] == ["1", "2"]
    with pytest.raises(BadXmlError):
        next(stream)
