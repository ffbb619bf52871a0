"""Bits per byte by set and domain, and the loss of every token."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tokenizer_settings import with_settings, with_token

from marin_assets.documents import Document, write_documents, write_rows
from marin_assets.inference.jax_model import ModelError
from marin_assets.stages.evaluate.perplexity.dataset_formats import LAYOUTS, TextError, read_texts
from marin_assets.stages.evaluate.perplexity.measure_perplexity import MeasurePerplexityConfig, Sums, measure_perplexity
from marin_assets.stages.evaluate.perplexity.token_losses import spans_of
from marin_assets.stages.tokenize.cache import read_documents_of
from marin_assets.stages.tokenize.tokenize import TokenizeConfig, tokenize
from marin_assets.step.values import unwrap_versioned_value, versioned


@pytest.fixture(scope="session")
def paloma(corpus: list[Document], tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two sources as Paloma has them: one with subdomains, one without."""
    folder = tmp_path_factory.mktemp("paloma")
    rows = [{"id": d.id, "text": d.text, "source": "help"} for d in corpus[:24]]
    with_domains = [{**row, "subdomain": f"part-{i % 2}"} for i, row in enumerate(rows[:12])]
    write_rows(str(folder / "help_parts/val/val_help_parts.jsonl.gz"), with_domains)
    write_rows(str(folder / "help/val/val_help.jsonl.gz"), rows[12:])
    return str(folder)


def measured(model_path: str, output: Path | str, **fields: Any) -> dict[str, Any]:
    config = MeasurePerplexityConfig(model_path=model_path, output_path=str(output), **fields)
    return measure_perplexity(unwrap_versioned_value(config))


def tokens_of(output: Path, name: str, number: int = 0) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(f"{output}/tokens/{name}/{number:05}.parquet").to_pylist()
    return rows


@pytest.mark.long
def test_the_sums_are_those_of_lm_eval(model_path: str, corpus: list[Document], tmp_path: Path) -> None:
    from lm_eval.api.instance import Instance

    from marin_assets.inference.jax_model import load_model
    from marin_assets.stages.evaluate.models.jax_lm import JaxLM

    chosen = [*corpus[:9], Document(id="short", text="It", source="pydoc", metadata={})]
    write_documents(str(tmp_path / "texts/a.jsonl.zst"), chosen)
    result = measured(model_path, tmp_path / "out", sets={"help": str(tmp_path / "texts")})
    requests = [
        Instance(request_type="loglikelihood_rolling", doc={}, arguments=(document.text,), idx=0) for document in chosen
    ]
    expected = JaxLM(*load_model(model_path)).loglikelihood_rolling(requests)
    rows = tokens_of(tmp_path / "out", "help")
    assert [row["id"] for row in rows] == [document.id for document in chosen]
    for row, total in zip(rows, expected, strict=True):
        assert sum(row["nats"]) == pytest.approx(-total, rel=1e-5)
        assert len(row["nats"]) == len(row["token_ids"])
    size = sum(len(document.text.encode()) for document in chosen)
    assert result["bits_per_byte"] == pytest.approx(-sum(expected) / math.log(2) / size, rel=1e-5)
    assert result["sets"]["help"]["perplexity"] == pytest.approx(math.exp(-sum(expected) / result["tokens"]), rel=1e-5)


@pytest.mark.long
def test_texts_are_read_as_in_training(model_path: str, corpus: list[Document], tmp_path: Path) -> None:
    """With a special token that is written in a text, and with a tokenizer that would cut and pad texts."""
    texts = ["A text that ends <|eos|> in its middle", "<|bos|>", *(document.text for document in corpus[:3])]
    write_documents(str(tmp_path / "t/a.jsonl.zst"), [Document(id=str(i), text=text) for i, text in enumerate(texts)])
    cache = TokenizeConfig(
        documents_path=f"{tmp_path}/t",
        tokenizer_path=model_path,
        output_path=f"{tmp_path}/cache",
        validation_fraction=0,
    )
    tokenize(cache)
    trained = [ids.tolist() for ids in read_documents_of(f"{tmp_path}/cache/train/00000", range(len(texts)))]
    found = {}
    for name, path in {"its own": model_path, "cut": with_settings(model_path, tmp_path / "cut")}.items():
        found[name] = measured(path, tmp_path / name, sets={"t": f"{tmp_path}/t"})
        rows = tokens_of(tmp_path / name, "t")
        assert [[0, *row["token_ids"], 1] for row in rows] == trained
        assert [row["ends"][-1] for row in rows] == list(map(len, texts))
    assert found["its own"]["sets"] == found["cut"]["sets"]


@pytest.mark.long
def test_a_token_that_the_model_has_no_row_for_is_an_error(model_path: str, tmp_path: Path) -> None:
    write_documents(str(tmp_path / "t/a.jsonl.zst"), [Document(id="0", text="one MORE")])
    with pytest.raises(ModelError, match="A token is 5000, expected one of the model's, from 0 to 511"):
        measured(with_token(model_path, tmp_path / "more", "MORE", 5000), tmp_path, sets={"t": f"{tmp_path}/t"})


@pytest.mark.long
def test_domains_are_those_of_paloma_and_add_up(model_path: str, paloma: str, tmp_path: Path) -> None:
    result = measured(model_path, tmp_path, sets={"paloma": paloma}, layouts=versioned({"paloma": "paloma"}))
    assert set(result["domains"]["paloma"]) == {"part-0", "part-1", "help"}
    stored = json.loads((tmp_path / "perplexity.json").read_text())
    by_domain, whole = stored["domains"]["paloma"], stored["sets"]["paloma"]
    for name in ("texts", "bytes", "tokens"):
        assert sum(numbers[name] for numbers in by_domain.values()) == whole[name] == result[name]
    bits = sum(numbers["bits_per_byte"] * numbers["bytes"] for numbers in by_domain.values())
    assert bits / whole["bytes"] == pytest.approx(whole["bits_per_byte"])
    assert (tmp_path / "plots/bits_per_byte.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.long
def test_texts_without_tokens_are_counted(model_path: str, tmp_path: Path) -> None:
    rows = [Document(id=f"{i}", text=text) for i, text in enumerate(["It is so.", "", "It was so.", ""])]
    write_documents(str(tmp_path / "texts/a.jsonl"), rows)
    write_documents(str(tmp_path / "texts/b.jsonl"), rows[1:2])
    result = measured(model_path, tmp_path / "out", sets={"help": str(tmp_path / "texts")})
    assert (result["texts"], result["texts_without_tokens"]) == (2, 3)
    assert result["sets"]["help"]["texts"] == 2
    sums = tmp_path / "out/sums/help/00000.json"
    stored = json.loads(sums.read_text())
    of_an_earlier_version = {
        domain: {name: value for name, value in fields.items() if name != "without_tokens"}
        for domain, fields in stored.items()
    }
    sums.write_text(json.dumps(of_an_earlier_version))
    again = measured(model_path, tmp_path / "out", sets={"help": str(tmp_path / "texts")})
    assert again == {**result, "texts_without_tokens": 1}
    write_documents(str(tmp_path / "none/a.jsonl"), rows[1:2])
    with pytest.raises(TextError, match=r"The set 'none' at .* has no text"):
        measured(model_path, tmp_path / "empty", sets={"none": str(tmp_path / "none")})


@pytest.mark.long
def test_batches_and_windows_change_nothing_and_something(model_path: str, paloma: str, tmp_path: Path) -> None:
    sets = {"paloma": paloma}
    one, other, shorter = (
        measured(model_path, tmp_path / str(i), sets=sets, **fields)
        for i, fields in enumerate([{}, {"batch_size": 3}, {"max_length": versioned(16)}])
    )
    assert one["bits_per_byte"] == pytest.approx(other["bits_per_byte"], rel=1e-6)
    assert shorter["bits_per_byte"] != pytest.approx(one["bits_per_byte"], rel=1e-4)
    assert shorter["tokens"] == one["tokens"]


@pytest.mark.long
def test_finished_files_are_not_scored_again(
    model_path: str, paloma: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sets = {"paloma": paloma}
    whole = measured(model_path, tmp_path, sets=sets)
    (tmp_path / "sums/paloma/00001.json").unlink()  # as if killed after the tokens of the second file
    read: list[str] = []

    def texts(file: str, *arguments: Any, **fields: Any) -> Any:
        read.append(file)
        return read_texts(file, *arguments, **fields)

    monkeypatch.setattr("marin_assets.stages.evaluate.perplexity.measure_perplexity.read_texts", texts)
    assert measured(model_path, tmp_path, sets=sets) == whole
    assert len(read) == 1
    assert measured(str(tmp_path / "no model"), tmp_path, sets=sets) == whole, "nothing is left to score"


@pytest.mark.long
def test_tokens_are_left_out_on_request(model_path: str, paloma: str, tmp_path: Path) -> None:
    result = measured(model_path, tmp_path, sets={"p": paloma}, tokens=versioned(False), max_texts=versioned(2))
    assert result["texts"] == 4
    assert not (tmp_path / "tokens").exists()


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"sets": {"paloma/c4": "p"}}, "A set is called 'paloma/c4', expected a name without '/'"),
        ({"sets": {}}, "has no sets, expected a folder of texts by name"),
        ({"layouts": {"other": "paloma"}}, "layouts names 'other', expected one of the sets 'p'"),
        (
            {"layouts": {"p": "palom"}},
            "The layout of 'p' is 'palom', expected one of 'documents', 'paloma', 'uncheatable'.",
        ),
    ],
)
def test_a_mistake_is_one_sentence(fields: Any, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(TextError) as caught:
        measured("no model", tmp_path, **{"sets": {"p": str(tmp_path)}, **fields})
    assert sentence in str(caught.value)


def test_each_character_of_a_very_long_and_of_a_hostile_text_is_measured(
    model_path: str, corpus: list[Document], tmp_path: Path
) -> None:
    prose = " ".join(document.text for document in corpus)[:200_000]
    texts = [prose.replace("\n", " "), "a\n" * 50_000, "\x00\u202e</script><script>alert(1)</script> \u05d0"]
    write_rows(str(tmp_path / "texts/a.jsonl"), [{"id": str(n), "text": text} for n, text in enumerate(texts)])
    result = measured(model_path, tmp_path / "out", sets={"long": str(tmp_path / "texts")})
    assert result["bytes"] == sum(len(text.encode()) for text in texts)
    rows = tokens_of(tmp_path / "out", "long")
    for row, text in zip(rows, texts, strict=True):
        assert row["text"] == text
        assert row["ends"][-1] == len(text)
        assert min(row["nats"]) > 0
    nats = math.fsum(loss for row in rows for loss in row["nats"])
    assert result["bits_per_byte"] == pytest.approx(nats / math.log(2) / result["bytes"], rel=1e-9)


def test_half_a_character_is_refused_with_its_row(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "\\ud83d"}\n')
    with pytest.raises(TextError, match=r"Row 1 of .* is no row: invalid_utf8"):
        list(read_texts(f"{tmp_path}/a.jsonl", LAYOUTS["documents"], root=str(tmp_path)))


def test_a_row_without_a_text_names_its_fields(tmp_path: Path) -> None:
    write_rows(str(tmp_path / "a.jsonl"), [{"id": "1", "body": "x"}])
    with pytest.raises(TextError, match=r"Row 1 of .* has no text in 'text'; it has 'body', 'id'"):
        list(read_texts(f"{tmp_path}/a.jsonl", LAYOUTS["paloma"], root=str(tmp_path)))


def test_uncheatable_eval_has_its_domain_in_the_name_of_the_file(tmp_path: Path) -> None:
    name = f"{tmp_path}/wikipedia_english_20240401to20240415.jsonl"
    write_rows(name, [{"content": "one"}, {"text": "two"}, {"text": ""}])
    found = list(read_texts(name, LAYOUTS["uncheatable"], root=str(tmp_path)))
    assert [(one.text, one.domain) for one in found] == [("one", "wikipedia_english"), ("two", "wikipedia_english")]


def test_the_last_window_begins_earlier_and_each_token_counts_once() -> None:
    assert spans_of(10, 4) == [(0, 0, 4), (4, 4, 8), (6, 8, 10)]
    assert spans_of(3, 4) == [(0, 0, 3)]
    assert spans_of(0, 4) == []


def test_the_error_is_that_of_a_ratio() -> None:
    equal, unequal = Sums(), Sums()
    for size, nats in ((100, 50.0), (300, 150.0), (200, 100.0)):
        equal.add(bytes_=size, tokens=10, nats=nats)
    for size, nats in ((100, 80.0), (300, 120.0), (200, 100.0)):
        unequal.add(bytes_=size, tokens=10, nats=nats)
    assert equal.numbers()["bits_per_byte_stderr"] == pytest.approx(0, abs=1e-12)
    residuals = [80 - 50, 120 - 150, 0]
    expected = math.sqrt(sum(r * r for r in residuals) * 3 / 2) / 600 / math.log(2)
    assert unequal.numbers()["bits_per_byte_stderr"] == pytest.approx(expected)
