"""Generate a text from each document with a model: summaries, questions, labels, translations.

In:  documents; the folder of a Hugging Face export, or an endpoint.
Out: documents, shard for shard under the same names: one for each document, in their order, with its id and source. The
     text is the model's answer, the metadata that of the document with `generated`: the numbers of tokens of prompt and
     answer, whether the answer ended by itself ("stop") or at its limit ("length"), and whether the document was cut.

A prompt is a template with the document's text in it, in a conversation if `chat` is set. A document that does not fit
in the model's window is cut at its end, so that the template's text after it stays. The stage is resumable: finished
shards stay, and of the others the answers that were last saved. Greedy answers do not depend on where it was
interrupted.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from marin_assets.documents import Document, DocumentFiles, document_files, output_name, read_documents, write_documents
from marin_assets.documents.shards import SUFFIX
from marin_assets.inference.decoder import Completion, Prompt
from marin_assets.inference.endpoint.client import STOPS
from marin_assets.inference.engine import Endpoint, Engine, check_engine
from marin_assets.inference.journal import FOLDER as JOURNALS
from marin_assets.inference.journal import Journal
from marin_assets.stages.generate.template import Template, TemplateError
from marin_assets.step.config_check import check_config
from marin_assets.step.values import THIS_OUTPUT_PATH, versioned
from marin_resources.hardware.resources import Resources
from marin_resources.step_api.progress import report_step
from marin_resources.storage.files import exists, remove_folder
from marin_resources.storage.paths import join

KINDS = ("jax",)
GENERATED = "generated"
"""The key in a document's metadata."""
LOG_EVERY_S = 5.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class GenerateConfig:
    model_path: str | None
    """Folder of a Hugging Face export; of an endpoint's model, one with its tokenizer, or None: then the prompts are
    sent as texts or messages, and none is cut."""
    documents_path: str
    template: str
    """The prompt for a document (`template.py`); versioned()."""
    output_path: str = THIS_OUTPUT_PATH
    max_tokens: int = versioned(256)
    """Most tokens of an answer."""
    temperature: float = versioned(0.0)
    """Divides the logits; at 0 the likeliest token is taken."""
    seed: int = versioned(0)
    """Seed of the first document of a shard; that of each further one is greater by 1."""
    stop: tuple[str, ...] = versioned(())
    """Texts that end an answer, and are not in it."""
    chat: bool = versioned(False)
    """Put the prompt into a conversation, by the tokenizer's chat template."""
    system_prompt: str | None = versioned(None)
    """The system's turn before it."""
    engine: Engine | Endpoint | None = None
    """Engine that computes the answers: our JAX model in this process if None."""
    save_every_s: float = 60.0
    """Interval between two saves of the answers of unfinished shards."""

    def check_step(self, name: str, resources: Resources) -> None:
        check_config(self, _checked, name)


def generate_from_documents(config: GenerateConfig) -> dict[str, Any]:
    """Generate.

    Returns documents, tokens (generated), prompt_tokens, cut (documents that did not fit), ended_by_limit and
    tokens_per_second (of this attempt). Raises TemplateError for a template without a meaning or a document that lacks
    a field of it, FileNotFoundError without documents, ModelError, EngineError.
    """
    template = _checked(config)
    if config.engine is not None:
        check_engine(config.engine)
    documents = document_files(config.documents_path)
    remaining = [file for file in documents.shards if not exists(_target(config, output_name(file, SUFFIX)))]
    log.info("%d of %d shards to generate", len(remaining), len(documents.shards))
    rate = 0.0
    if remaining:
        from marin_assets.inference.generator import open_generator  # late, for the weight of its imports

        with open_generator(config.engine, config.model_path) as generator:
            rate = _Run(config, template, generator).generate(
                {output_name(shard, SUFFIX): shard.path for shard in remaining}
            )
    with suppress(FileNotFoundError):
        remove_folder(join(config.output_path, JOURNALS))  # a kill may have left that of a finished shard
    return {**_counts(config, documents), "tokens_per_second": rate, **documents.counts}


def _checked(config: GenerateConfig) -> Template:
    stop: object = config.stop
    if not isinstance(stop, tuple | list) or not all(isinstance(text, str) and text for text in stop):
        raise TemplateError(
            f"GenerateConfig has stop={stop!r}, expected a tuple of texts, none of them empty, such as ('END',)."
        )
    if config.max_tokens < 1 or not 0 <= config.temperature < math.inf:
        raise TemplateError(
            f"GenerateConfig has max_tokens={config.max_tokens!r} and temperature={config.temperature!r}, expected at "
            "least 1 and at least 0."
        )
    if config.system_prompt is not None and not config.chat:
        raise TemplateError("GenerateConfig has a system_prompt without chat=True, expected both, or neither.")
    if config.model_path is None and not isinstance(config.engine, Endpoint):
        raise TemplateError(
            "GenerateConfig has no model_path, and an engine that is no Endpoint, expected the folder of an export. "
            "Set model_path."
        )
    if isinstance(config.engine, Endpoint) and len(config.stop) > STOPS:
        raise TemplateError(
            f"GenerateConfig has {len(config.stop)} texts in stop, expected {STOPS} at most: OpenAI's API takes no "
            "more. Leave some out."
        )
    return Template(config.template)


@dataclass
class _Shard:
    """A shard under way."""

    name: str
    path: str
    journal: Journal
    waits_for: set[int] = field(default_factory=set)
    """Places of documents whose answers are not there."""
    is_read: bool = False


class _Run:
    """Generates shards with one stream of prompts, so that the engine is never short of them."""

    def __init__(self, config: GenerateConfig, template: Template, generator: Any) -> None:
        self.config, self.template, self.generator = config, template, generator
        self._under_way: list[_Shard] = []
        self._publisher = ThreadPoolExecutor(1, thread_name_prefix="publishes")  # beside the engine, which computes
        self._published: list[Future[None]] = []
        self._sent: dict[int, tuple[_Shard, int, dict[str, Any]]] = {}
        self._number = 0
        self._tokens = self._documents = 0
        self._began_s = self._logged_s = time.monotonic()

    def generate(self, shards: Mapping[str, str]) -> float:
        """Generate the shards: paths of documents by names. Returns the tokens a second."""
        self._began_s = time.monotonic()
        with self._publisher:
            try:
                self.generator.run(self._prompts(shards), self._take)
            except BaseException:  # a stop too: its answers are kept
                for shard in self._under_way:
                    shard.journal.save()
                raise
            for published in self._published:
                published.result()
        return self._tokens / max(time.monotonic() - self._began_s, 1e-9)

    def _prompts(self, shards: Mapping[str, str]) -> Iterator[Any]:
        for name, path in shards.items():
            journal = Journal(self.config.output_path, name, save_every_s=self.config.save_every_s)
            shard = _Shard(name, path, journal)
            self._under_way.append(shard)
            for place, document in enumerate(read_documents(path)):
                if place in journal.rows:
                    continue
                prompt, facts = self._prompt(document, place)
                shard.waits_for.add(place)
                self._sent[self._number] = (shard, place, facts)
                self._number += 1
                yield prompt
            shard.is_read = True
            self._publish_if_finished(shard)

    def _prompt(self, document: Document, place: int) -> tuple[Any, dict[str, Any]]:
        """The prompt for a document, and what is recorded of it."""
        if self.config.model_path is None:
            return self._text_prompt(document, place), {"cut": False}
        room = self.generator.max_length - self.config.max_tokens
        ids, is_cut = self._ids(self.template.render(document)), False
        if len(ids) > room:
            ids, is_cut = self._cut(document, room), True
        prompt = Prompt(
            ids=tuple(ids),
            max_tokens=self.config.max_tokens,
            stops=self.config.stop,
            temperature=self.config.temperature,
            seed=self.config.seed + place,
        )
        return prompt, {"prompt_tokens": len(ids), "cut": is_cut}

    def _text_prompt(self, document: Document, place: int) -> Any:
        from marin_assets.inference.generator import TextPrompt

        text = self.template.render(document)
        return TextPrompt(
            text=tuple(self._messages(text)) if self.config.chat else text,
            max_tokens=self.config.max_tokens,
            stops=self.config.stop,
            temperature=self.config.temperature,
            seed=self.config.seed + place,
        )

    def _messages(self, text: str) -> list[dict[str, str]]:
        system = [{"role": "system", "content": self.config.system_prompt}] if self.config.system_prompt else []
        return [*system, {"role": "user", "content": text}]

    def _cut(self, document: Document, room: int) -> list[int]:
        """The prompt with as much of the document's text as fits. Raises TemplateError if nothing of it does."""
        tokenizer = self.generator.tokenizer
        around = len(self._ids(self.template.render(document, "")))
        text = tokenizer.encode(document.text)
        kept = room - around
        while kept > 0:
            shortened = tokenizer.decode(text[:kept], skip_special_tokens=True)
            ids = self._ids(self.template.render(document, shortened))
            if len(ids) <= room:
                return ids
            kept -= len(ids) - room  # the text's last tokens are others beside the template's
        raise TemplateError(
            f"The template takes {around} tokens without a document, and the model's window of "
            f"{self.generator.max_length} has room for {room} beside an answer of {self.config.max_tokens}. "
            "Shorten it, or lower max_tokens."
        )

    def _ids(self, text: str) -> list[int]:
        tokenizer = self.generator.tokenizer
        if not self.config.chat:
            ids = tokenizer.encode(text)
            bos = tokenizer.bos_token_id
            return ids if bos is None or ids[:1] == [bos] else [bos, *ids]
        if not tokenizer.chat_template:
            raise TemplateError("chat is set, and the model's tokenizer has no chat template. Set chat=False.")
        return tokenizer.encode_chat(self._messages(text))

    def _take(self, number: int, completion: Completion) -> None:
        shard, place, facts = self._sent.pop(number)
        facts = {"prompt_tokens": completion.prompt_tokens, **facts}
        facts |= {"tokens": completion.tokens, "finish": completion.finish}
        shard.journal.add({"place": place, "text": completion.text, GENERATED: facts})
        shard.waits_for.discard(place)
        self._tokens += completion.tokens
        self._documents += 1
        self._log_progress()
        self._publish_if_finished(shard)

    def _publish_if_finished(self, shard: _Shard) -> None:
        """Begin to write the shard, if it has all its answers."""
        if shard.is_read and not shard.waits_for and shard in self._under_way:
            for published in self._published:
                if published.done():
                    published.result()  # a disk that is full ends the step now
            self._under_way.remove(shard)
            self._published.append(self._publisher.submit(self._publish, shard))

    def _publish(self, shard: _Shard) -> None:
        """Write the shard; its journal is removed after it."""
        answers = (
            replace(
                document,
                text=(row := shard.journal.rows[place])["text"],
                metadata={**document.metadata, GENERATED: row[GENERATED]},
            )
            for place, document in enumerate(read_documents(shard.path))
        )
        try:
            write_documents(_target(self.config, shard.name), answers)
        except BaseException:  # whatever it is, the next attempt finds its answers
            shard.journal.save()
            raise
        shard.journal.remove()

    def _log_progress(self) -> None:
        report_step(self._documents)
        if (now := time.monotonic()) - self._logged_s > LOG_EVERY_S:
            self._logged_s = now
            rate = self._tokens / (now - self._began_s)
            log.info("%d documents, %.0f tokens/s", self._documents, rate)


def _target(config: GenerateConfig, name: str) -> str:
    return join(config.output_path, name)


def _counts(config: GenerateConfig, documents: DocumentFiles) -> dict[str, int]:
    counts = {"documents": 0, "tokens": 0, "prompt_tokens": 0, "cut": 0, "ended_by_limit": 0}
    for file in documents.shards:
        for document in read_documents(_target(config, output_name(file, SUFFIX))):
            facts = document.metadata[GENERATED]
            counts["documents"] += 1
            counts["tokens"] += facts["tokens"]
            counts["prompt_tokens"] += facts["prompt_tokens"]
            counts["cut"] += facts["cut"]
            counts["ended_by_limit"] += facts["finish"] == "length"
    return counts
