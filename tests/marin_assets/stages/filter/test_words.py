import time
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marin_assets.stages.filter.words import (
    SplitterError,
    spacy_languages,
    spacy_splitter,
    splitter,
    splitter_named,
)

TRICKY = """ : ) ( ' " - / . ... … ! ? ; , 's it don't Mr. a.m. 10a.m. e.g. U.S. :-) :D ^_^ <3 xD ° C. 8 km 3.5kg $5
http://a.b/c?d x@y.z foo—bar and/or I.S.A. cannot 。 ？ ” ’ US$5 C$ A$b
it’s 5°C. 10km km² a.b.c b.com:80 x=y 1,5 1-2 a-b .5 #1 ~/x --help "(a)", x') ['y']: ,b"""
BLANKS = [" ", "  ", "\n", "\t", "\u00a0", "\x1c"]
WORDS = "a A I U s D x p o Ab no NO don can cannot im Mr etc vs am pm ß é naïve wörter слово НЕТ 日本 ไทย x² Ⅷ"
TEXTS = st.lists(st.sampled_from([*TRICKY.split(), *BLANKS, " "]) | st.text(max_size=4), max_size=25).map("".join)


@pytest.fixture(scope="module")
def spacy_itself() -> Any:
    import spacy

    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    return nlp


def test_fast_words_keep_their_inner_marks_and_other_marks_are_words() -> None:
    words = splitter_named("fast").words
    expected = 'Don’t stop : it\'s " 3.5 " , 10:30 , naïve …'
    assert words('Don’t stop: it\'s "3.5", 10:30, naïve…') == expected.split()
    assert words("e\u0301te\u0301 日本 -- x_1... !!") == ["e\u0301te\u0301", "日本", "--", "x_1", "...", "!", "!"]
    assert words("see (https://a.b/c-d?e=f), os.path, f(x)") == (
        ["see", "(", "https://a.b/c-d?e=f", ")", ",", "os.path", ",", "f(x", ")"]
    )
    assert words(" \n\t") == words("") == []


def test_fast_sentences_end_with_a_mark_and_whitespace() -> None:
    splitter = splitter_named("fast")
    text = 'One. "Two!" Three 3.5 is... four?\nFive'
    assert splitter.sentences(text) == ["One. ", '"Two!" ', "Three 3.5 is... ", "four?\n", "Five"]
    assert splitter.count_sentences(text) == 5
    assert splitter.sentences("") == [""]


@pytest.mark.parametrize(
    ("text", "words", "sentences"),
    [
        ("यह हिन्दी है। दूसरा वाक्य।", "यह|हिन्दी|है|।|दूसरा|वाक्य|।", "यह हिन्दी है। |दूसरा वाक्य।"),
        ("日本語。二つ!", "日|本|語|。|二|つ|!", "日本語。|二つ!"),
        ("ไทย 12 ครั้ง", "ไ|ท|ย|12|ค|ร|ั|้|ง", "ไทย 12 ครั้ง"),
        ("هذا نص؟ نعم.", "هذا|نص|؟|نعم|.", "هذا نص؟ |نعم."),
        ("l’été: 3,5 km... Où?", "l’été|:|3,5|km|...|Où|?", "l’été: 3,5 km... |Où?"),
        ("한국어 문장입니다. 둘", "한국어|문장입니다|.|둘", "한국어 문장입니다. |둘"),
        ("e\u0301te\u0301 தமிழ் שָׁלוֹם", "e\u0301te\u0301|தமிழ்|שָׁלוֹם", "e\u0301te\u0301 தமிழ் שָׁלוֹם"),
    ],
)
def test_words_by_script_keep_their_marks_and_sentences_end_in_any_script(
    text: str, words: str, sentences: str
) -> None:
    splitter = splitter_named("script")
    assert splitter.words(text) == words.split("|")
    assert splitter.sentences(text) == sentences.split("|")
    assert splitter.count_sentences(text) == len(splitter.sentences(text))


@settings(max_examples=200, deadline=None)
@given(TEXTS | st.text(max_size=60))
def test_words_by_script_lose_no_character(text: str) -> None:
    splitter = splitter_named("script")
    assert "".join(splitter.words(text)) == "".join(text.split())
    assert "".join(splitter.sentences(text)) == text


@settings(max_examples=400, deadline=None)
@given(TEXTS)
def test_spacy_words_and_sentences_are_those_of_spacy(spacy_itself: Any, text: str) -> None:
    splitter = splitter_named("spacy")
    with spacy_itself.memory_zone():
        doc = spacy_itself(text)
        words = [token.text.strip() for token in doc if token.text.strip()]
        ends = [sentence.end_char for sentence in doc.sents][:-1]
    sentences = [text[a:b] for a, b in zip([0, *ends], [*ends, len(text)], strict=True)]
    assert splitter.words(text) == words
    assert splitter.sentences(text) == sentences
    assert splitter.count_sentences(text) == len(sentences)


def test_words_between_marks_are_those_of_spacy(spacy_itself: Any) -> None:
    befores, afters = ["", *"\"'([“‘«:"], ["", *".,;:!?)]\"'”’»…。"]
    chunks = ["".join(parts) for parts in product(befores, WORDS.split(), afters)]
    splitter = splitter_named("spacy")
    for chunk in chunks:
        assert splitter.words(chunk) == [token.text for token in spacy_itself(chunk)], chunk


@pytest.mark.parametrize(
    "text",
    [
        "One. Two",
        "One.  Two",
        "One.\nTwo.\n\n) Three",
        "One. ",
        "One.  ",
        "One.\n",
        " \n One! ) Two",
        "",
        " ",
        "One.\u00a0Two",
        "。 ！\t1",
    ],
)
def test_whitespace_beyond_one_space_begins_a_sentence_as_in_spacy(spacy_itself: Any, text: str) -> None:
    assert splitter_named("spacy").count_sentences(text) == max(1, len(list(spacy_itself(text).sents)))


def test_what_spacy_remembers_is_bounded_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    remembering, forgetting = spacy_splitter.SpacySplitter(), spacy_splitter.SpacySplitter()
    texts = [f"It's {i} o'clock ( : x ) {'long' * 20}{i}." for i in range(50)]
    expected = [remembering.words(text) for text in texts]
    monkeypatch.setattr(splitter, "MAX_REMEMBERED", 10)
    assert [forgetting.words(text) for text in texts] == expected
    assert len(forgetting._tokens) + len(forgetting._tokens._older) <= 16 + 10
    assert not any(len(chunk) > splitter.MAX_REMEMBERED_CHARACTERS for chunk in remembering._tokens)


@pytest.mark.parametrize("text", ["x(" * 2_500_000, ": ) " * 200_000, "." * 3_000_000], ids=["line", "cases", "dots"])
@pytest.mark.parametrize("name", ["fast", pytest.param("spacy", marks=pytest.mark.long)])
def test_no_text_takes_quadratic_time(name: str, text: str) -> None:
    splitter = splitter_named(name)
    began = time.monotonic()
    splitter.words(text)
    splitter.count_sentences(text)
    assert time.monotonic() - began < 20


QUICK = ("deu_Latn", "rus_Cyrl", "tur_Latn")
NATURAL = {
    "deu_Latn": "Das Haus, z.B. am Tor (Nr. 5), kostet 3,50 €/m² – usw. Geht's? Ja!  Der 3. Tag.",
    "fra_Latn": "L'homme n'est-il pas là, aujourd'hui ? « Oui », dit-elle. C'est-à-dire : 3,5 km. M. Dupont s'en va.",
    "rus_Cyrl": "Он сказал: «Это т.е. 5-й дом, и т.д.» Кто-то ушёл? Да!  В 1999 г. было 10%.",
    "tur_Latn": "Dr. Ali'nin evi 3. katta, vb. şeyler var. Saat 10:30'da mı? Evet!",
    "ell_Grek": "Ο κ. Παππάς, π.χ. ο γιατρός, ήρθε στις 5 μ.μ.; Ναι!",
    "arb_Arab": "قال: «هذا البيت، رقم ٥»، ثم ذهب؟ نعم! انتهى.",
}


@pytest.mark.parametrize(
    "tag", [tag if tag in QUICK else pytest.param(tag, marks=pytest.mark.long) for tag in spacy_languages()]
)
def test_words_of_a_language_are_those_of_spacy(tag: str) -> None:
    import spacy

    nlp = spacy.blank(spacy_languages()[tag])
    nlp.add_pipe("sentencizer")
    splitter = splitter_named("spacy", tag)
    for text in (NATURAL.get(tag, ""), TRICKY, " ".join(NATURAL.values())):
        doc = nlp(text)
        assert splitter.words(text) == [token.text for token in doc if not token.text.isspace()]
    text = "One (5). Two! «Three» ends? Four, five."
    assert [part.strip() for part in splitter.sentences(text)] == [sentence.text for sentence in nlp(text).sents]
    assert splitter.words("") == []
    assert splitter.sentences("") == [""]


def test_long_chunks_of_marks_take_linear_time_in_every_language() -> None:
    splitter = splitter_named("spacy", "deu_Latn")
    began = time.process_time()
    splitter.words("(" * 2_000_000 + " " + " ".join(f"{'(' * 400}{i}" for i in range(2000)))
    splitter.words(" ".join(f"{'(' * 30}{i}" for i in range(2000)))
    assert time.process_time() - began < 20


def test_an_unknown_language_of_words_is_an_error() -> None:
    with pytest.raises(SplitterError, match="words is 'german', expected one of"):
        splitter_named("spacy", "german")
    with pytest.raises(SplitterError, match="'deu_Latn' and words is 'fast', which has no rules"):
        splitter_named("fast", "deu_Latn")


def test_an_unknown_splitter_is_an_error() -> None:
    with pytest.raises(SplitterError, match="'nltk', expected one of 'fast', 'spacy'"):
        splitter_named("nltk")
