"""Create the steps of a corpus that every machine has: Python's own documentation, and a tokenizer of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from marin_assets.defaults.data import default_tokenizer
from marin_assets.defaults.environment import curated
from marin_assets.stages.download.docstring_chats import DocstringChatsConfig, docstring_chats
from marin_assets.stages.download.docstring_crawl import DocstringCrawlConfig, installed, write_docstring_crawl
from marin_assets.stages.download.pydoc import PydocConfig, render_pydoc
from marin_assets.stages.quality.label_pydoc import NEGATIVE, POSITIVE, LabelPydocConfig, label_pydoc
from marin_assets.stages.transform.html_to_markdown import HtmlToMarkdownConfig, html_to_markdown
from marin_assets.step.argument_check import checks_arguments
from marin_assets.step.step import Step
from marin_assets.step.values import InputName, output_path_of, versioned

PACKAGES = ("dagster", "ray", "sqlalchemy")
"""Packages with many paragraphs of prose, which an environment with the extra "curate" has."""


@dataclass(frozen=True, kw_only=True)
class PythonText:
    """A small corpus: what the recipes are tried with."""

    documents: Step
    """Pages of all modules and of the language reference."""
    prose: InputName
    """Paragraphs of them that are prose."""
    listings: InputName
    """Pieces of them that list names and signatures."""
    tokenizer: Step


@checks_arguments()
def default_python_text(
    name: str, *, vocab_size: int, validation_fraction: float, max_modules: int | None = None
) -> PythonText:
    """Return the steps "raw/<name>", "documents/<name>", "examples/<name>" and "tokenizers/<name>".

    `max_modules` are spread evenly over the alphabet. The tokenizer is trained on what is not held out.
    """
    pages = Step(
        name=f"raw/{name}", fn=render_pydoc, config=PydocConfig(max_modules=versioned(max_modules)), resumable=True
    )
    documents = curated(
        f"documents/{name}",
        html_to_markdown,
        HtmlToMarkdownConfig(pages_path=output_path_of(pages)),
        unaccounted="pages_unaccounted",
    )
    examples = curated(f"examples/{name}", label_pydoc, LabelPydocConfig(documents_path=output_path_of(documents)))
    return PythonText(
        documents=documents,
        prose=output_path_of(examples, POSITIVE),
        listings=output_path_of(examples, NEGATIVE),
        tokenizer=default_tokenizer(name, documents, vocab_size=vocab_size, validation_fraction=validation_fraction),
    )


@checks_arguments()
def default_docstring_chats(name: str, *, max_chats: int | None = None) -> Step:
    """Return the step "raw/<name>": in `chats` and in `preferences` questions about functions of the standard library,
    answered by their docstrings."""
    return Step(
        name=f"raw/{name}",
        fn=docstring_chats,
        config=DocstringChatsConfig(max_chats=versioned(max_chats)),
        extras=("curate",),  # zstandard
    )


@checks_arguments()
def default_docstring_crawl(
    name: str, packages: Sequence[str] | Mapping[str, str] = PACKAGES, *, max_modules: int | None = None
) -> Step:
    """Return the step "raw/<name>": a small web crawl, in WARC files, of the docstrings of packages.

    The packages are installed ones, or name -> version of others, which are installed where the step runs.
    `max_modules` of each are evenly spaced.
    """
    pinned = packages if isinstance(packages, Mapping) else {}
    versions = dict(packages) if isinstance(packages, Mapping) else installed(*packages)
    return Step(
        name=f"raw/{name}",
        fn=write_docstring_crawl,
        config=DocstringCrawlConfig(packages=versioned(versions), max_modules=versioned(max_modules)),
        extras=("curate",),
        packages=tuple(f"{package}=={version}" for package, version in pinned.items()),
        resumable=True,
    )
