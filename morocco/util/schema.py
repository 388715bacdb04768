"""Files of settings and results as typed objects: converted by msgspec, faults named by key.

Loading msgspec takes some 30 ms, so only rooms that read such files import this one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from pathlib import Path
from reprlib import repr as shorten
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from msgspec import Meta, ValidationError
from msgspec.inspect import type_info

from morocco.errors import DataError

_Kind = TypeVar("_Kind")

_INVISIBLE = r"\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff"
Name = Annotated[
    str,
    Meta(pattern=rf"^(?=.*\S)[^{_INVISIBLE}]+\Z", max_length=1000, description="a name"),
]
"""Printable text that is not blank."""
Count = Annotated[int, Meta(ge=1, le=2**63 - 1, description="a whole number from 1 up")]
Amount = Annotated[float, Meta(gt=0, lt=1e9, description="a number above 0")]

_LISTS = (tuple, list, Sequence)
_DESCRIPTIONS: Mapping[Any, str] = {
    int: "a whole number",
    float: "a number",
    str: "a string",
    bool: "true or false",
    **dict.fromkeys(_LISTS, "a list"),
}
"""What a kind without a description of its own must be; any other kind is a table."""


def convert(
    content: object,
    kind: type[_Kind],
    source: Path | str,
    *,
    key: str = "",
    hint: str = "",
    allow_unknown: bool = False,
) -> _Kind:
    """Return TOML or JSON content as an object of `kind`, a dataclass or msgspec.Struct.

    The fields of `kind` are annotated with `msgspec.Meta`: its bounds are checked, and its
    description, such as "a whole number from 1 up", appears in the message. A ValueError raised by
    `__post_init__` is reported as a fault of that table.

    Raises DataError, which names `source` (the file), the key, and what it must be; `key` is the
    place of the content within the file, `hint` a sentence on what to do. Unknown keys are a fault
    unless they are allowed.
    """
    fault = _find_fault(content, kind, key, allow_unknown)
    if fault is not None:
        raise DataError(f"{source}: {fault}. {hint}".rstrip())
    return msgspec.convert(content, kind)


def _find_fault(value: object, kind: Any, key: str, allow_unknown: bool) -> str | None:
    """Return the first fault, with the key as the file names it."""
    if not allow_unknown and (unknown := _find_unknown_key(value, kind, key)):
        return unknown
    for name, part, kind_of_part in _list_parts(value, kind, key):
        if fault := _find_fault(part, kind_of_part, name, allow_unknown):
            return fault
    try:
        msgspec.convert(value, kind)
    except ValidationError as error:
        return _explain(value, kind, key, error)
    return None


def _find_unknown_key(value: object, kind: Any, key: str) -> str | None:
    fields = _list_fields(_unwrap(kind)[0])
    if isinstance(value, dict) and fields:
        for name in value:
            if name not in fields:
                allowed = ", ".join(_join(key, field) for field in fields)
                return f"there is no key {_join(key, name)!r}; allowed: {allowed}"
    return None


def _list_parts(value: object, kind: Any, key: str) -> Iterator[tuple[str, object, Any]]:
    """Yield key, value and kind of each part of a table or list; a described list has no parts."""
    plain, description = _unwrap(kind)
    if isinstance(value, dict):
        fields = _list_fields(plain)
        if get_origin(plain) in (dict, Mapping):
            kind_of_key, kind_of_part = get_args(plain)
            fields = dict.fromkeys(value, kind_of_part)
            yield from ((_join(key, name), name, kind_of_key) for name in value)
        for name, kind_of_part in fields.items():
            if name in value:
                yield _join(key, name), value[name], kind_of_part
    elif isinstance(value, list) and description is None and get_origin(plain) in _LISTS:
        for number, part in enumerate(value):
            yield f"{key}[{number}]", part, get_args(plain)[0]


def _list_fields(plain: Any) -> dict[str, Any]:
    """Return the kinds of the fields of a dataclass or Struct; none for any other kind."""
    if is_dataclass(plain) or isinstance(plain, msgspec.StructMeta):
        return get_type_hints(plain, include_extras=True)
    return {}


def _explain(value: object, kind: Any, key: str, error: ValidationError) -> str:
    plain, description = _unwrap(kind)
    if isinstance(value, dict) and _list_fields(plain):
        for field in cast("Any", type_info(plain)).fields:
            if field.required and field.name not in value:
                needed = _describe(_list_fields(plain)[field.name])
                return f"the key {_join(key, field.name)!r} is missing; it must be {needed}"
        message = str(error).partition(" - at ")[0]  # of `__post_init__`
        return f"{key!r} cannot be used: {message}" if key else message
    where = repr(key) if key else "the content"
    return f"{where} must be {description or _describe(kind)}, not {shorten(value)}"


def _describe(kind: Any) -> str:
    plain, description = _unwrap(kind)
    if get_origin(plain) is Literal:
        return " or ".join(map(str, get_args(plain)))
    return description or _DESCRIPTIONS.get(get_origin(plain) or plain, "a table")


def _unwrap(kind: Any) -> tuple[Any, str | None]:
    """Return a kind without `| None` and annotations, and the description among the latter."""
    description = None
    while True:
        arguments = [argument for argument in get_args(kind) if argument is not NoneType]
        if get_origin(kind) is Annotated:
            found = (meta.description for meta in arguments[1:] if isinstance(meta, Meta))
            description = next(filter(None, found), description)
        elif get_origin(kind) not in (Union, UnionType) or len(arguments) > 1:
            return kind, description
        kind = arguments[0]


def _join(key: str, name: object) -> str:
    return f"{key}.{name}" if key else str(name)
