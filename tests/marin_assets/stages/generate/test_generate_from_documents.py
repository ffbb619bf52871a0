"""Texts made from documents: one for each, the same after any interruption."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import pytest
from random_llama import write_random_llama
from running import wait_until

from marin_assets.documents import Document, read_documents, shard_name, write_documents
from marin_assets.inference.engine import JAX
from marin_assets.inference.journal import FOLDER
from marin_assets.stages.generate.generate_from_documents import GenerateConfig, _checked, generate_from_documents
from marin_assets.stages.generate.template import Template, TemplateError
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.storage.files import names_below, read_bytes
from marin_resources.storage.filesystems.filesystem import filesystem_of
from marin_resources.storage.paths import join

WINDOW = 64
TEMPLATE = "Of {metadata.page}: {text}\nIn short:"
pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def model_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_random_llama(tmp_path_factory.mktemp("hf"), list(topics.values())[:50], WINDOW)


@pytest.fixture(scope="module")
def documents_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Four shards: short documents, long ones, none, and one without text."""
    folder = tmp_path_factory.mktemp("documents")
    names = sorted(topics)
    shards = [
        [Document(id=n, text=topics[n][:40], source="pydoc", metadata={"page": n}) for n in names[:30]],
        [Document(id=n, text=topics[n][:2000], metadata={"page": "p"}) for n in names[30:50]],
        [],
        [Document(id="empty", text="", metadata={"page": "é"})],
    ]
    for i, shard in enumerate(shards):
        write_documents(str(folder / shard_name(i, len(shards))), shard)
    return str(folder)


def config_of(model_path: str, documents_path: str, output: Path, **fields: Any) -> GenerateConfig:
    given = {"template": TEMPLATE, "max_tokens": 12, **fields}
    return unwrap_versioned_value(
        GenerateConfig(model_path=model_path, documents_path=documents_path, output_path=str(output), **given)
    )


def written(output: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(output.glob("*.jsonl.zst"))}


@pytest.fixture(scope="module")
def undisturbed(
    model_path: str, documents_path: str, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, Any]]:
    output = tmp_path_factory.mktemp("undisturbed")
    return output, generate_from_documents(config_of(model_path, documents_path, output))


@pytest.mark.long
def test_each_document_has_its_answer_shard_for_shard(
    undisturbed: tuple[Path, dict[str, Any]], documents_path: str
) -> None:
    output, result = undisturbed
    assert result["documents"] == 51
    assert written(output).keys() == {path.name for path in Path(documents_path).iterdir()}
    answers = []
    for path in sorted(Path(documents_path).iterdir()):
        documents, made = list(read_documents(str(path))), list(read_documents(str(output / path.name)))
        assert [(one.id, one.source) for one in made] == [(one.id, one.source) for one in documents]
        answers += made
    facts = [answer.metadata["generated"] for answer in answers]
    assert all(1 <= one["prompt_tokens"] <= WINDOW - 12 for one in facts)
    assert result["cut"] == sum(one["cut"] for one in facts) >= 20
    assert result["tokens"] == sum(one["tokens"] for one in facts)
    assert len({answer.text for answer in answers}) > 5
    assert not list(output.glob(".marin/**/*.jsonl"))


@pytest.mark.long
def test_a_server_gives_the_same_answers(
    undisturbed: tuple[Path, dict[str, Any]], model_path: str, documents_path: str, tmp_path: Path
) -> None:
    generate_from_documents(config_of(model_path, documents_path, tmp_path, engine=JAX))
    assert written(tmp_path) == written(undisturbed[0])


SCRIPT = """
import json, sys
from marin_assets.stages.generate.generate_from_documents import GenerateConfig, generate_from_documents
config = json.loads(sys.argv[1])
print("begins", flush=True)
generate_from_documents(GenerateConfig(**{**config, "stop": tuple(config["stop"])}))
"""


@pytest.mark.long
def test_ten_kills_change_nothing(
    undisturbed: tuple[Path, dict[str, Any]], model_path: str, documents_path: str, tmp_path: Path
) -> None:
    config = vars(config_of(model_path, documents_path, tmp_path, save_every_s=0.0))
    command = [sys.executable, "-c", SCRIPT, json.dumps(config)]
    drawn, saved = random.Random(7), []
    for _ in range(10):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert process.stdout is not None
        process.stdout.readline()
        goal = _saved(tmp_path) + drawn.randint(1, 4)
        while process.poll() is None and _saved(tmp_path) < goal:
            time.sleep(0.002)
        process.kill()
        process.wait()
        saved.append(_saved(tmp_path))
    assert saved == sorted(saved)
    assert 0 < saved[0] < saved[-1]
    subprocess.run(command, check=True, capture_output=True)
    assert written(tmp_path) == written(undisturbed[0])
    assert not list(tmp_path.glob(".marin/**/*.jsonl"))


@pytest.mark.long
def test_in_a_bucket_it_is_the_same_also_after_a_kill(
    undisturbed: tuple[Path, dict[str, Any]], model_path: str, documents_path: str, gcs_prefix: str
) -> None:
    model, documents, output = (join(gcs_prefix, name) for name in ("model", "documents", "output"))
    fs, root = filesystem_of(gcs_prefix)
    fs.put(model_path, f"{root}/model", recursive=True)
    fs.put(documents_path, f"{root}/documents", recursive=True)
    config = vars(config_of(model, documents, Path("output"), save_every_s=0.0)) | {"output_path": output}
    command = [sys.executable, "-c", SCRIPT, json.dumps(config)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        wait_until(lambda: names_below(join(output, FOLDER)), "saved answers", timeout_s=120)
        process.kill()
    assert names_below(join(output, FOLDER))
    subprocess.run(command, check=True, capture_output=True)
    found = {name: read_bytes(join(output, name)) for name in names_below(output)}
    assert found == written(undisturbed[0])


def _saved(output: Path) -> int:
    """Answers that a next attempt finds: of finished shards, and of unfinished ones.

    A shard that is published may still have its journal, which then counts no more.
    """
    lines: dict[str, int] = {}
    for path in output.glob(".marin/unfinished/*/*.jsonl"):
        try:
            content = path.read_bytes()
        except FileNotFoundError:  # its shard has just been finished
            continue
        shard = path.parent.name.partition(".")[0]
        lines[shard] = lines.get(shard, 0) + content.count(b"\n")
    for path in output.glob("*.jsonl.zst"):
        lines[path.name.partition(".")[0]] = sum(1 for _ in read_documents(str(path)))
    return sum(lines.values())


@pytest.mark.parametrize(
    ("template", "sentence"),
    [
        ("Summarize.", "has no {text}, so all documents would get one prompt"),
        ("{text} {}", "has the field {}, expected {text}"),
        ("{text} {title}", "has the field {title}, expected"),
        ("{text} {metadata.}", "has the field {metadata.}"),
        ("{text}\n{text}", "has {text} 2 times, expected it once"),
        ("{text.upper}", "has the field {text.upper}, expected"),
        ("{text[0]}", "has the field {text[0]}, expected"),
        ("{text!r}", "has {text!r}, expected the field alone: {text}"),
        ("{text:>10} {id}", "has {text:>10}, expected the field alone"),
        ("{text", "cannot be read: expected '}' before end of string. Double a brace"),
    ],
)
def test_a_template_without_a_meaning_is_a_sentence(template: str, sentence: str) -> None:
    with pytest.raises(TemplateError) as refused:
        Template(template)
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"stop": "END"}, "stop='END', expected a tuple of texts, none of them empty"),
        ({"stop": ("a", "")}, "stop=('a', ''), expected a tuple of texts"),
        ({"temperature": float("nan")}, "temperature=nan, expected at least 1 and at least 0"),
    ],
)
def test_a_setting_without_a_meaning_is_a_sentence(fields: Any, sentence: str) -> None:
    with pytest.raises(TemplateError) as refused:
        _checked(config_of("m", "d", Path("o"), **fields))
    assert sentence in str(refused.value)


def test_a_template_takes_what_a_document_has() -> None:
    document = Document(id="a", text="x {y}", source="web", metadata={"tags": ["b"], "n": 3})
    template = Template('{{"text": "{text}"}} {id} {source} {metadata.tags} {metadata.n}')
    assert template.render(document) == '{"text": "x {y}"} a web ["b"] 3'
    with pytest.raises(TemplateError, match=r"'a' has no 'title' in its metadata, .* it has \['n', 'tags'\]"):
        Template("{text} {metadata.title}").render(document)


@pytest.mark.long
def test_a_template_that_leaves_no_room_is_a_sentence(model_path: str, documents_path: str, tmp_path: Path) -> None:
    with pytest.raises(TemplateError, match=r"has room for 4 beside an answer of 60\. Shorten it"):
        generate_from_documents(config_of(model_path, documents_path, tmp_path, max_tokens=60))
    with pytest.raises(TemplateError, match="no chat template"):
        generate_from_documents(config_of(model_path, documents_path, tmp_path, chat=True))
    with pytest.raises(TemplateError, match="system_prompt without chat"):
        generate_from_documents(config_of(model_path, documents_path, tmp_path, system_prompt="Be brief."))
