"""The webserver keeps what it has parsed, and answers as it did before."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import graphql
import pytest
from dagster_webserver import graphql as server

from marin_resources.dagster_fixes.query_cache import LONGEST, cache_queries

SCHEMA = graphql.build_schema("type Query { name: String, age: Int }")
OTHER = graphql.build_schema("type Query { age: Int }")


class Counted:
    """graphql's own parse and validate, in a module's place, with the number of their calls."""

    def __init__(self) -> None:
        self.module: Any = SimpleNamespace(parse=self._counted(graphql.parse), validate=self._counted(graphql.validate))
        self.calls: list[str] = []
        cache_queries(self.module)

    def _counted(self, function: Any) -> Any:
        def call(*arguments: Any) -> Any:
            self.calls.append(function.__name__)
            return function(*arguments)

        return call

    def ask(self, query: str, schema: graphql.GraphQLSchema = SCHEMA) -> list[str]:
        """The mistakes in a query."""
        errors = self.module.validate(schema, self.module.parse(query), rules=graphql.specified_rules)
        return [error.message for error in errors]


@pytest.fixture
def counted() -> Counted:
    return Counted()


def test_a_document_is_parsed_and_validated_once(counted: Counted) -> None:
    assert [counted.ask("{ name }") for _ in range(3)] == [[], [], []]
    assert counted.calls == ["parse", "validate"]


def test_a_mistake_is_named_each_time(counted: Counted) -> None:
    first, second = counted.ask("{ nme }"), counted.ask("{ nme }")
    assert first == second == ["Cannot query field 'nme' on type 'Query'. Did you mean 'name' or 'age'?"]
    for _ in range(2):
        with pytest.raises(graphql.GraphQLError, match="Syntax Error"):
            counted.ask("{ name")


def test_another_schema_is_asked_for_itself(counted: Counted) -> None:
    assert counted.ask("{ name }") == []
    assert counted.ask("{ name }", OTHER) == ["Cannot query field 'name' on type 'Query'. Did you mean 'age'?"]
    assert counted.ask("{ name }") == []


def test_a_huge_document_is_not_kept(counted: Counted) -> None:
    huge = "{ name }" + " " * LONGEST
    assert counted.ask(huge) == counted.ask(huge) == []
    assert counted.calls == ["parse", "validate"] * 2


def test_the_webserver_has_what_is_replaced() -> None:
    assert server.parse is graphql.parse
    assert server.validate is graphql.validate
