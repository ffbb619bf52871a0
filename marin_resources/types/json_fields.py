"""A JSON object as a class: each field is declared once, with the shape that a reader checks and a typed attribute.

    class Size(JsonObject):
        digest = text()
        files = integer()

    Size.from_dict({"files": 3, "later": 1}).files     3
    Size.shape                                         {"digest": str, "files": int}, for `VersionedJson`

An object keeps the JSON that it was made from, with fields that it does not declare. A field that is missing, or null,
is None, or empty if its value has parts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import FrozenInstanceError
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NoReturn, Self, TypeVar

from marin_resources.types.versioned_json import ANY, Required, Shape

T = TypeVar("T")
Part = TypeVar("Part", bound="JsonObject")
_UNCHECKED: Any = object()


class Field(Generic[T]):
    """The declaration of a field: its shape, and how its value is read. The class of it has a property in its place."""

    def __init__(self, shape: Shape, read: Callable[[str], Callable[[Any], T]], name: str = "") -> None:
        """`read` takes the name of the field, and returns a function of the object."""
        self.shape, self.read, self.name = shape, read, name

    if TYPE_CHECKING:

        def __get__(self, owner: JsonObject, kind: type) -> T: ...


class JsonObject:
    """JSON with typed access to the fields that its class declares. It is false if it has no field at all."""

    __slots__ = ("_json",)
    _json: Mapping[str, Any]
    shape: ClassVar[Mapping[str, Shape]] = {}
    """Field -> shape, of the checked fields, in the order in which they are declared."""

    def __init_subclass__(cls) -> None:
        own = {attribute: declared for attribute, declared in vars(cls).items() if isinstance(declared, Field)}
        named = {attribute: declared.name or attribute for attribute, declared in own.items()}
        checked = (attribute for attribute, declared in own.items() if declared.shape is not _UNCHECKED)
        cls.shape = {**cls.shape, **{named[attribute]: own[attribute].shape for attribute in checked}}
        for attribute, declared in own.items():
            # a descriptor in Python takes twice as long, and a plan of 3,000 steps reads 100,000 fields
            setattr(cls, attribute, property(declared.read(named[attribute])))

    def __init__(self, fields: Mapping[str, Any] | None = None) -> None:
        _keep(self, {} if fields is None else fields)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """An object with these fields. They are not checked, and are not to be changed."""
        return cls(fields)

    def to_dict(self) -> dict[str, Any]:
        """All fields, also those that are not declared, in the order in which they were read."""
        return dict(self._json)

    def __bool__(self) -> bool:
        return bool(self._json)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._json == other._json

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._json!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._json,)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")


_keep = JsonObject.__dict__["_json"].__set__
"""Sets the JSON of a new object, which is frozen otherwise."""


def text(name: str = "") -> Field[str | None]:
    """A text. `name`: that of the field, if the attribute has another one."""
    return Field(str, _as_it_is, name)


def integer() -> Field[int | None]:
    return Field(int, _as_it_is)


def number() -> Field[float | None]:
    return Field(float, _as_it_is)


def required_text(name: str = "") -> Field[str]:
    """A text without which a reader refuses the object."""
    return Field(Required(str), _as_it_is, name)


def required_texts() -> Field[Mapping[str, str]]:
    """Texts by any name, without which a reader refuses the object."""
    return Field(Required({ANY: Required(str)}), _as_it_is)


def texts() -> Field[Sequence[str]]:
    """A list of texts; empty if it is missing."""
    return Field([str], _sequence)


def objects() -> Field[Sequence[Mapping[str, Any]]]:
    """A list of objects; empty if it is missing."""
    return Field([dict], _sequence)


def mapping() -> Field[Mapping[str, Any]]:
    """An object of any fields; empty if it is missing."""
    return Field(dict, _mapping)


def numbers_by_name() -> Field[Mapping[str, float]]:
    """Numbers by any name; empty if they are missing."""
    return Field({ANY: float}, _mapping)


def texts_by_name() -> Field[Mapping[str, str | None] | None]:
    """Texts by any name; None if they are missing."""
    return Field({ANY: str}, _as_it_is)


def unchecked() -> Field[Any]:
    """A value that no reader checks: any JSON."""
    return Field(_UNCHECKED, _as_it_is)


def part(kind: type[Part]) -> Field[Part]:
    """An object of its own; without a field if it is missing."""
    return Field(kind.shape, lambda name: lambda owner: kind(owner._json.get(name) or {}))


def optional_part(kind: type[Part]) -> Field[Part | None]:
    """An object of its own; None if it is missing or has no field."""
    return Field(kind.shape, lambda name: lambda owner: kind(fields) if (fields := owner._json.get(name)) else None)


def parts_by_name(kind: type[Part]) -> Field[Mapping[str, Part]]:
    """Objects by any name; empty if they are missing."""

    def read(name: str) -> Callable[[Any], Mapping[str, Part]]:
        return lambda owner: {key: kind(fields) for key, fields in (owner._json.get(name) or {}).items()}

    return Field({ANY: kind.shape}, read)


def _as_it_is(name: str) -> Callable[[Any], Any]:
    return lambda owner: owner._json.get(name)


def _mapping(name: str) -> Callable[[Any], Mapping[str, Any]]:
    return lambda owner: owner._json.get(name) or {}


def _sequence(name: str) -> Callable[[Any], Sequence[Any]]:
    return lambda owner: owner._json.get(name) or ()
