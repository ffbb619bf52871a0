"""Tokens of a cache: pieces, ids and the loss mask; a damaged cache never ends the server."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from browser_server import Browser, browsing
from stored_outputs_for_browsing import store_output

from marin_assets.stages.tokenize.cache import Names, write_rows, write_split

TEXTS = [
    "hello world",
    "ภาษาไทย สวัสดี",
    "🙂👨‍👩‍👧 né",
    "日本語\n\tx",
    "",
    "<b>&amp;</b> \x00\x1b",
    " ".join(map(str, range(1500))),
]
METADATA = {"append_bos": True, "append_eos": True}
BOS, EOS = 0, 1


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache of two shards with a loss mask, and its tokenizer; complete."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    prefix = tmp_path_factory.mktemp("tokens")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = ["<|bos|>", "<|eos|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    learnt = store_output(str(prefix), "tokenizers/web", {})
    tokenizer.save(str(prefix / learnt / "tokenizer.json"))
    below = store_output(str(prefix), "tokenized/web", {}, reads=[learnt])
    split = prefix / below / "train"
    split.mkdir()
    rows = [[BOS, *tokenizer.encode(text, add_special_tokens=False).ids, EOS] for text in TEXTS]
    for shard, indices in (("00000", range(4)), ("00001", range(4, len(TEXTS)))):
        ids = np.array([id for i in indices for id in rows[i]], dtype=np.int32)
        ends = np.cumsum([len(rows[i]) for i in indices])
        masks = np.array([n % 2 for i in indices for n in range(len(rows[i]))], dtype=np.int32)
        names = Names(ids=[f"doc#{i}" for i in indices], pages=["doc" for _ in indices])
        write_rows(str(split / shard), {"input_ids": (ids, ends), "assistant_masks": (masks, ends)}, names, METADATA)
    write_split(str(split), ["00000", "00001"], METADATA)
    return prefix


@pytest.fixture
def prefix(cache: Path, tmp_path: Path) -> Path:
    return shutil.copytree(cache, tmp_path / "prefix")


@pytest.fixture
def browser(prefix: Path) -> Iterator[Browser]:
    with browsing(str(prefix)) as browser:
        yield browser


TRAIN = "tokenized/web-abc123/train"


def pieces(html: str) -> list[str]:
    return [
        unescape(text) for text in re.findall(r'<span class="token[^"]*" title="id \d+">(.*?)</span>', html, re.DOTALL)
    ]


def text_of(shown: list[str]) -> str:
    """The text of pieces as they are shown: with marks for bytes and for what cannot be seen."""
    joined = "".join(shown).replace("↵\n", "\n").replace("␀", "\0").replace("␛", "\x1b")
    parts = re.split(r"((?:⟨[0-9A-F]{2}⟩)+)", joined)
    return b"".join(
        bytes.fromhex(re.sub("[⟨⟩]", "", part)) if part.startswith("⟨") else part.encode() for part in parts
    ).decode()


def test_the_pieces_are_the_text_with_its_ends_in_every_script(browser: Browser) -> None:
    for row, text in enumerate(TEXTS[:-1]):
        answer = browser.get("tokens", path=TRAIN, row=row)
        shown = pieces(answer.html)
        assert (shown[0], shown[-1]) == ("<|bos|>", "<|eos|>")
        assert text_of(shown[1:-1]) == text
        assert f"Tokens of row {row}: doc#{row}" in answer.text
    assert "Rows have a token at the beginning (bos) and a token at the end (eos)" in answer.text


def test_the_mask_is_that_of_the_cache_and_a_long_row_has_parts(browser: Browser) -> None:
    answer = browser.get("tokens", path=TRAIN, row=0)
    marks = re.findall(r'<span class="token([^"]*)"', answer.html)
    assert [" learnt" in mark for mark in marks] == [n % 2 == 1 for n in range(len(marks))]
    assert f"Of the {len(marks)} shown, the loss of {len(marks) // 2} counts" in answer.text
    long = browser.get("tokens", path=TRAIN, row=6)
    total = int(re.findall(r"Tokens 0 to [\d,]+ of ([\d,]+)", long.text)[0].replace(",", ""))
    shown = pieces(long.html)
    while len(shown) < total:
        shown += pieces(browser.get("tokens", path=TRAIN, row=6, start=len(shown)).html)
    assert text_of(shown[1:-1]) == TEXTS[6]


def test_a_row_behind_the_last_and_a_folder_that_is_no_cache_are_sentences(browser: Browser) -> None:
    assert (
        browser.get("tokens", path=TRAIN, row=7).sentence == f"'{TRAIN}' has no row 7, counted from 0. It has 7 rows."
    )
    assert "is no token cache, or it is still written" in browser.get("tokens", path="tokenized/web-abc123").sentence


def test_without_a_tokenizer_the_ids_are_shown(prefix: Path) -> None:
    shutil.rmtree(prefix / "tokenizers")
    with browsing(str(prefix)) as browser:
        answer = browser.get("tokens", path=TRAIN, row=0)
    assert "no tokenizer is among the inputs" in answer.text
    assert pieces(answer.html)[0] == "0"


def forge_offsets(shard: Path, values: list[int]) -> None:
    import tensorstore as ts

    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{shard}/input_ids/offsets/"}}
    ts.open(spec, open=True).result()[: len(values)].write(np.array(values)).result()


def edit(path: Path, **fields: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


DAMAGES = {
    "offsets beyond the data": lambda shard: forge_offsets(shard, [4, 2**50, 2**51]),
    "offsets that go back": lambda shard: forge_offsets(shard, [4, 9, 3]),
    "negative offsets": lambda shard: forge_offsets(shard, [4, -5, -3]),
    "no rows in the offsets": lambda shard: forge_offsets(shard, [0]),
    "too many rows in the offsets": lambda shard: forge_offsets(shard, [2**62]),
    "a huge chunk": lambda shard: huge_chunk(shard / "input_ids/data/zarr.json"),
    "no metadata": lambda shard: (shard / "input_ids/data/zarr.json").unlink(),
    "metadata that are none": lambda shard: (shard / "input_ids/offsets/zarr.json").write_text("[]"),
    "cut data": lambda shard: (shard / "input_ids/data/c/0").write_bytes(b"\2\1\3" * 7),
    "noise": lambda shard: (shard / "input_ids/offsets/c/0").write_bytes(bytes(range(256)) * 20),
    "a ledger that is a list": lambda shard: (shard / "shard_ledger.json").write_text("[]"),
    "a ledger with words": lambda shard: edit(shard / "shard_ledger.json", total_num_rows="many"),
    "a ledger of the split with a path": lambda shard: edit(
        shard.parent / "shard_ledger.json", finished_shards=["../../../../etc"], shard_rows={"../../../../etc": 5}
    ),
    "a ledger of the split without shards": lambda shard: edit(shard.parent / "shard_ledger.json", finished_shards=[]),
    "no array": lambda shard: shutil.rmtree(shard / "input_ids"),
}  # fmt: skip


def huge_chunk(path: Path) -> None:
    metadata = json.loads(path.read_text())
    metadata["codecs"][0]["configuration"]["chunk_shape"] = [2**40]
    metadata["chunk_grid"]["configuration"]["chunk_shape"] = [2**40]
    path.write_text(json.dumps(metadata))


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_cache_is_a_sentence_and_the_server_lives_on(prefix: Path, damage: str) -> None:
    DAMAGES[damage](prefix / TRAIN / "00000")
    with browsing(str(prefix)) as browser:
        for row in (0, 1):
            answer = browser.get("tokens", path=TRAIN, row=row)
            assert answer.status in (200, 403, 404, 422)
            assert "Traceback" not in answer.html
        assert answer.status != 200 or damage in ("noise", "a ledger with words")  # the split's own ledger has the rows
        assert browser.get("").status == 200


def test_a_link_to_arrays_outside_is_not_followed(prefix: Path, cache: Path) -> None:
    shutil.rmtree(prefix / TRAIN / "00000/input_ids")
    (prefix / TRAIN / "00000/input_ids").symlink_to(cache / TRAIN / "00000/input_ids")
    with browsing(str(prefix)) as browser:
        assert browser.get("tokens", path=TRAIN, row=0).status == 403


def test_the_tokens_of_rows_are_a_histogram_whose_bars_lead_to_a_row(browser: Browser, cache: Path) -> None:
    names = ("00000", "00001")
    for path, rows in (
        (TRAIN, len(TEXTS)),
        *((f"{TRAIN}/{name}", count) for name, count in zip(names, (4, 3), strict=True)),
    ):
        answer = browser.get("histogram", path=path)
        assert f"All {rows} rows." in answer.text
        bins = re.findall(
            r'<th scope="row"><a href="(/tokens[^"]*)">([\d,]+)(?: to ([\d,]+))?</a></th><td>(\d+)', answer.html
        )
        assert sum(int(count) for *_, count in bins) == rows
        for link, least, most, _ in bins:
            page = browser.send("GET", unescape(link))
            total = int(re.findall(r"([\d,]+) tokens\. Of the", page.text)[0].replace(",", ""))
            low, high = (int(bound.replace(",", "")) for bound in (least, most or least))
            assert low <= total <= high


def test_many_rows_are_drawn_by_a_seed(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("marin_assets.browse.stored.token_lengths.MOST_WHOLE", 3)
    answer = browser.get("histogram", path=TRAIN, rows=5, seed=2)
    assert "A sample: 5 of 7 rows, drawn with the seed 2" in answer.text
    assert answer.body == browser.get("histogram", path=TRAIN, rows=5, seed=2).body


def test_a_damaged_cache_has_a_sentence_in_place_of_a_histogram(browser: Browser, prefix: Path) -> None:
    ledger = prefix / TRAIN / "00000/shard_ledger.json"
    for path, change in (
        (TRAIN, {"shard_rows": {"00000": 2**40, "00001": 3}}),
        (f"{TRAIN}/00000", {"total_num_rows": 9999}),
    ):
        file = prefix / path / ledger.name
        stored = file.read_text()
        file.write_text(json.dumps({**json.loads(stored), **change}))
        answer = browser.get("histogram", path=path)
        assert (answer.status, "cannot be read" in answer.sentence) == (422, True)
        file.write_text(stored)
    (prefix / TRAIN / "00001/input_ids/offsets/zarr.json").write_text("{}")
    assert browser.get("histogram", path=TRAIN).status == 422
