"""The webserver's GraphQL documents, each parsed and validated once.

The UI of Dagster 1.13 has about 200 documents and sends the same ones again and again. Dagster parses and validates
each anew, which is a third to three quarters of what the UI's questions cost the webserver. Execution only reads a
document, so that one object serves all requests. A document with a mistake is refused anew each time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

KEPT = 256
LONGEST = 16_000
"""Characters of a document that is kept. With 45 bytes a character, nobody's documents fill more than 200 MB."""


class _Invalid(Exception):
    """It carries the errors of a document past a cache, which keeps results only."""


def cache_queries(server: Any) -> None:
    """Let the module `dagster_webserver.graphql` keep what it has parsed and found valid."""
    server.parse, server.validate = _kept(server.parse, server.validate)


def _kept(parse: Callable[..., Any], validate: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    parse_once = lru_cache(KEPT)(parse)

    @lru_cache(KEPT)
    def check_once(schema: Any, query: str, rules: Any) -> None:
        errors = validate(schema, parse_once(query), rules)
        if errors:
            raise _Invalid(errors)

    def parse_kept(query: str) -> Any:
        return (parse if len(query) > LONGEST else parse_once)(query)

    def validate_kept(schema: Any, document: Any, rules: Any = None) -> Any:
        query = document.loc.source.body
        if len(query) > LONGEST:
            return validate(schema, document, rules)
        try:
            check_once(schema, query, rules)
        except _Invalid as invalid:
            return invalid.args[0]
        return []

    return parse_kept, validate_kept
