"""200 made texts whose decisions datatrove 0.9.0 gave (`golden_decisions.json`). To record them again:

    python tests/support/golden_texts.py > texts.jsonl

and run `tests/benchmarks/sides/filters_datatrove.py texts.jsonl decisions decisions.jsonl` with datatrove's Python.

`golden_pages` are for the decisions of DCLM's code (`golden_dclm.json`); with "pages" as argument, they are printed.
"""

from __future__ import annotations

import json
import random
import sys

COUNT = 200
WORDS = """
the of and to that have with be a in is it for was on are as they at this from or had by not but what some we can out
other were all there when up use your how said an each she which do their time if will way about many then them write
would like so these her long make thing see him two has look more day could go come did number sound no most people
my over know water than call first who may down side been now find any new work part take get place made live where
after back little only round man year came show every good me give our under name very through just form sentence
great think say help low line differ turn cause much mean before move right boy old too same tell does set three want
air well also play small end put home read hand port large spell add even land here must big high such follow act why
ask men change went light kind off need house picture try us again animal point mother world near build self earth
don't can't it's they're we'll o'clock Mr. Dr. e.g. U.S. a.m. 10:30 3.5 1,000 42 well-known http://example.com/a?b=c
me@example.com naïve café Zürich 日本 :-) C++ $5 50% state-of-the-art (see and/or "quoted" 'single' [1] [edit]
"""
BUTTONS = """
3 likes|* 1,024 Views *|12K followers|4.5m downloads|likes 3|LOUD HEADINGS AND MENUS|Half LOUD HALF quiet|ÄÖÜ ÉÈ ß|2024
12345678|٣٤٥|2 items in cart|Items in cart|Read more...|The rest is here. Read more...|read more about it|Sign-in
Sign-in to vote|The Sign-in page|Word|.|   |		Tabs and more	|See www.example.com/a(b)?c=d&e#f for it
ftp://files.example.co.uk:21/pub, and me@mail.example.org.|http://10.0.0.1:80/x and 192.168.1.255|Version 1.2.3.4.5.6
пример.рф и https://пример.рф/путь|x.invalid and y.zip and z.ZIP|a...b.com|.org|e.g. this, i.e. that|          end.it
"""
"""Lines, divided by "|" and line feeds, that DCLM's rules for lines and web addresses are about."""
STRANGE_WORDS = """
# ... … -- *** ° == || <b> { javascript lorem ipsum cookie policy terms of use uses cookies [12] ) ( : ; /
"""
BUTTON_LINES = [line for row in BUTTONS.strip("\n").split("\n") for line in row.split("|")]
VOCABULARY, STRANGE = WORDS.split(), STRANGE_WORDS.split()


class Dice(random.Random):
    """Of `random.Random`, only `random()` is the same in every Python."""

    def pick(self, things: list[str]) -> str:
        return things[int(self.random() * len(things))]

    def between(self, low: int, high: int) -> int:
        return low + int(self.random() * (high - low + 1))


def golden_texts() -> list[str]:
    return [_text(Dice(number), number) for number in range(COUNT)]


def golden_pages() -> list[str]:
    """The texts with lines of menus and counters, and web addresses."""
    pages: list[str] = []
    for number, text in enumerate(golden_texts()):
        dice = Dice(COUNT + number)
        lines = text.split("\n")
        for _ in range(dice.between(0, 4)):
            lines.insert(dice.between(0, len(lines)), dice.pick(BUTTON_LINES))
        separator = "\n\n\n" if number % 9 == 0 else "\n"
        pages.append(separator.join(lines))
    return pages


def _text(dice: Dice, number: int) -> str:
    strangeness = (0.0, 0.0, 0.01, 0.1)[number % 4]
    ends = [[".", ".", "!", "?"], [".", "...", ""], [""], [".", '."', "…"]][number // 4 % 4]
    shortest, longest = [(8, 25), (1, 7), (3, 60)][number % 3]
    lines: list[str] = []
    for _ in range(dice.between(3, 24)):
        line = " ".join(dice.pick(STRANGE if dice.random() < strangeness else VOCABULARY) for _ in range(
            dice.between(shortest, longest)
        ))  # fmt: skip
        lines.append(dice.pick(["", "", "", "- ", "• "]) * (number % 5 == 0) + line.capitalize() + dice.pick(ends))
    repeats = (0, 0, 1, 6)[dice.between(0, 3)]
    lines += [dice.pick(lines) for _ in range(repeats)]
    text = ["\n", "\n\n", " ", "\n \n"][number % 7 % 4].join(lines)
    if number % 6 == 1:  # phrases that come again
        words = text.split(" ")
        phrase = words[: dice.between(2, 11)]
        text = " ".join(word for w in words for word in ([w, *phrase] if dice.random() < 0.05 else [w]))
    if number % 16 == 5:
        text = " ".join(word[: dice.between(1, 3)] for word in text.split(" "))
    return text.replace(" ", "") if number % 50 == 7 else text


if __name__ == "__main__":
    for text in golden_pages() if "pages" in sys.argv else golden_texts():
        print(json.dumps(text))
