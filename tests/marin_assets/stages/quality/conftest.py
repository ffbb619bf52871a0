"""Texts of two kinds that every machine has: paragraphs of the language reference, and lists of names."""

from __future__ import annotations

import importlib
import re
from pydoc_data.topics import topics

import pytest

from marin_assets.documents import Document

MODULES = ["argparse", "ast", "asyncio", "collections", "decimal", "email", "inspect", "logging", "os", "pathlib"]
MODULES += ["pickle", "socket", "ssl", "string", "subprocess", "tarfile", "threading", "typing", "unittest", "zipfile"]


@pytest.fixture(scope="session")
def prose() -> list[Document]:
    """About 900 paragraphs; the page is the topic."""
    return [
        Document(id=f"{name}/{i}", text=text, metadata={"page": name})
        for name, topic in sorted(topics.items())
        for i, text in enumerate(re.split(r"\n\s*\n", topic))
        if len(text.split()) >= 30
    ]


@pytest.fixture(scope="session")
def names() -> list[Document]:
    """About 200 runs of `name = type`; the page is the module."""
    documents = []
    for module in MODULES:
        found = sorted(vars(importlib.import_module(module)).items())
        lines = [f"{name} = {type(value).__name__}" for name, value in found]
        for start in range(0, len(lines), 10):
            text = "\n".join(lines[start : start + 10])
            documents.append(Document(id=f"{module}/{start}", text=text, metadata={"page": module}))
    return documents
