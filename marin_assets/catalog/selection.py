"""The selection language: which steps of a graph a command is about. One language for scripts and every verb.

It is Dagster's syntax for asset selections, with one addition: a bare pattern selects steps by name.

    key:"two_steps/stats"    the step with this asset key; "*" stands for any text
    group:raw  kind:jax  owner:"me@x.org"  tag:team  tag:team=data     the steps with this property
    tokenized                  the steps whose name contains this regular expression; a whole name, or else a whole
                               asset key, is that step only
    *                          every step
    +A   2+A                   A and all its inputs; up to 2 layers of them
    A+   A+2                   A and all its readers; up to 2 layers of them
    roots(A)   sinks(A)        the steps of A without inputs in A; without readers in A
    not A   A and B   A or B   (…)

Edges are the ones that order the run, as in Dagster's graph; a non-blocking input has none. Dagster itself is not
loaded: that takes a second.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from marin_assets.catalog.asset_key import group_of, key_of
from marin_assets.catalog.description import kinds_of
from marin_assets.step.graph import Graph, Node
from marin_assets.step.values import ConfigError

SHOWN_NAMES = 5
"""The largest number of steps that an error lists by name."""
NEAR, CUTOFF = 3, 0.75
"""Names that are proposed for a text that selects nothing, and how alike they are at least: a ratio of difflib."""
TOKEN = re.compile(
    r"""\s*(?:
        (?P<attribute>[a-z]+):(?P<value>(?:"[^"]*"|[^\s()+"=]+)(?:=(?:"[^"]*"|[^\s()+"=]+))?)
      | (?P<function>roots|sinks)\s*(?=\()
      | (?P<mark>[()])
      | (?P<depth>\d*\+\d*)
      | "(?P<quoted_pattern>[^"]*)"
      | (?P<word>[^\s()+"]+)
    )""",
    re.VERBOSE,
)


def select(graph: Graph, selections: Sequence[str], among: Sequence[Node] | None = None) -> list[Node]:
    """The nodes that any of the selections selects, in the order of the graph; all nodes without a selection.

    With `among`, names, attributes and `not` refer to those nodes only; traversals follow the whole graph. Raises
    ConfigError for a selection that cannot be parsed, or that selects nothing.
    """
    nodes = list(graph) if among is None else list(among)
    if not selections:
        return nodes
    selected = {node for text in selections for node in _evaluate(graph, nodes, text)}
    return [node for node in graph if node in selected]


def select_names(graph: Graph, patterns: Sequence[str], option: str) -> list[Node]:
    """The nodes whose name contains one of the regular expressions, and all their inputs; all nodes without a pattern.

    Marin's `--run_only`. Raises ConfigError that begins with `option`.
    """
    if not patterns:
        return list(graph)
    selected = _upstream(node for pattern in patterns for node in _named(list(graph), pattern, option))
    return [node for node in graph if node in selected]


def _evaluate(graph: Graph, nodes: list[Node], text: str) -> set[Node]:
    selected = _Parser(graph, nodes, text).parse()
    if not selected:
        raise _nothing("The selection", text, nodes)
    return selected


@dataclass
class _Parser:
    """Recursive descent over the tokens of one selection; each method returns the nodes of its part."""

    graph: Graph
    nodes: list[Node]
    text: str
    tokens: list[re.Match[str]] = field(default_factory=list)

    def parse(self) -> set[Node]:
        position = 0
        while self.text[position:].strip():
            token = TOKEN.match(self.text, position)
            if token is None:
                raise self._error(f"at {self.text[position:].strip()!r}")
            self.tokens.append(token)
            position = token.end()
        if not self.tokens:
            raise self._error("as it is empty")
        selected = self._or()
        if self.tokens:
            raise self._error(f"at {self.tokens[0][0].strip()!r}")
        return selected

    def _or(self) -> set[Node]:
        selected = self._and()
        while self._take("word", "or"):
            selected = selected | self._and()
        return selected

    def _and(self) -> set[Node]:
        selected = self._not()
        while self._take("word", "and"):
            selected = selected & self._not()
        return selected

    def _not(self) -> set[Node]:
        if self._take("word", "not"):
            return set(self.nodes) - self._not()
        return self._traversal()

    def _traversal(self) -> set[Node]:
        up = self._take("depth")
        if up is not None and re.fullmatch(r"\+\d+", up):
            raise self._error(f"at {up!r}: write {up[1:]}+ before a step")
        selected = self._atom()
        down = self._take("depth")
        above = _upstream(selected, int(up[:-1]) if up and up != "+" else None) if up else set()
        below = self._downstream(selected, int(down[1:]) if down and down != "+" else None) if down else set()
        return selected | above | below

    def _atom(self) -> set[Node]:
        if (function := self._take("function")) is not None or self._take("mark", "(") is not None:
            if function is not None:
                self._take("mark", "(")
            selected = self._or()
            if self._take("mark", ")") is None:
                raise self._error("as a ')' is missing")
            return _ENDS[function](selected) if function else selected
        if not self.tokens:
            raise self._error("as it ends too early")
        token = self.tokens.pop(0)
        if token["attribute"]:
            return self._attribute(token["attribute"], token["value"].replace('"', ""))
        if token["word"] == "*":
            return set(self.nodes)
        pattern = token["quoted_pattern"] or token["word"]
        if not pattern:
            raise self._error(f"at {token[0].strip()!r}")
        return _named(self.nodes, pattern, "The selection")

    def _attribute(self, attribute: str, value: str) -> set[Node]:
        if attribute not in _ATTRIBUTES:
            raise self._error(f"at {attribute + ':'!r}, expected {', '.join(f'{name}:' for name in _ATTRIBUTES)}")
        pattern = re.compile(".*".join(map(re.escape, value.split("*"))))
        return {node for node in self.nodes if any(map(pattern.fullmatch, _ATTRIBUTES[attribute](node)))}

    def _downstream(self, nodes: set[Node], layers: int | None) -> set[Node]:
        reached, remaining = set(nodes), layers
        while remaining is None or remaining > 0:
            further = {node for node in self.graph if node not in reached and not reached.isdisjoint(node.dependencies)}
            if not further:
                break
            reached |= further
            remaining = None if remaining is None else remaining - 1
        return reached

    def _take(self, kind: str, value: str | None = None) -> str | None:
        if self.tokens and self.tokens[0][kind] is not None and value in (None, self.tokens[0][kind]):
            return self.tokens.pop(0)[kind]
        return None

    def _error(self, where: str) -> ConfigError:
        return ConfigError(
            f"The selection {self.text!r} cannot be parsed {where}. Give part of a step's name, or Dagster's syntax "
            """such as '+key:"two_steps/stats"'."""
        )


def _named(nodes: list[Node], pattern: str, option: str) -> set[Node]:
    exact = {node for node in nodes if node.name == pattern} or {
        node for node in nodes if "/".join(key_of(node)) == pattern
    }
    try:
        matching = exact or {node for node in nodes if re.search(pattern, node.name)}
    except re.error as error:
        raise ConfigError(f"{option} {pattern!r} is not a pattern ({error}). Give part of a name.") from None
    if not matching:
        raise _nothing(option, pattern, nodes)
    return matching


def _upstream(nodes: Iterable[Node], layers: int | None = None) -> set[Node]:
    edge = reached = set(nodes)
    while edge and (layers is None or layers > 0):
        edge = {dependency for node in edge for dependency in node.dependencies} - reached
        reached = reached | edge
        layers = None if layers is None else layers - 1
    return reached


def _nothing(option: str, text: str, nodes: Iterable[Node]) -> ConfigError:
    """The error of a text that selects none of the nodes: it proposes the near names, else the few or how to list."""
    names = sorted(node.name for node in nodes)
    if near := _near(text, names, {"/".join(key_of(node)): node.name for node in nodes}):
        proposed = f"finds none of the steps. Did you mean {' or '.join(map(repr, near))}?"
    elif len(names) <= SHOWN_NAMES:
        proposed = f"finds none of the steps {', '.join(names)}. Give part of a name."
    else:
        proposed = f"finds none of the steps. Give part of a name: `marin list` prints all {len(names)}."
    return ConfigError(f"{option} {text!r} {proposed}")


def _near(text: str, names: Sequence[str], name_by_key: Mapping[str, str]) -> list[str]:
    """The names of the steps that somebody may have meant: by name, by asset key, else by a segment of the name."""
    typed = re.sub(r'^\w+:|["+*]', "", text)
    whole = [*names, *name_by_key]
    segments = list(dict.fromkeys(segment for name in names for segment in name.split("/")))
    near: list[str] = []
    for candidates, number in ((whole, NEAR), (segments, 1)) if "/" in typed else ((segments, 1), (whole, NEAR)):
        near = near or difflib.get_close_matches(typed, candidates, n=number, cutoff=CUTOFF)
    return list(dict.fromkeys(name_by_key.get(name, name) for name in near))


def _roots(nodes: set[Node]) -> set[Node]:
    return {node for node in nodes if nodes.isdisjoint(node.dependencies)}


def _sinks(nodes: set[Node]) -> set[Node]:
    return nodes - {dependency for node in nodes for dependency in node.dependencies}


def _tags(node: Node) -> list[str]:
    return [*node.step.tags, *(f"{key}={value}" for key, value in node.step.tags.items())]


_ENDS: dict[str, Callable[[set[Node]], set[Node]]] = {"roots": _roots, "sinks": _sinks}
_ATTRIBUTES: dict[str, Callable[[Node], Iterable[str]]] = {
    "key": lambda node: ["/".join(key_of(node))],
    "group": lambda node: [group_of(node)],
    "kind": lambda node: kinds_of(node.step),
    "owner": lambda node: node.step.owners,
    "tag": _tags,
}
