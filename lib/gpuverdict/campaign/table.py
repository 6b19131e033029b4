"""The keys of the campaign file as a table, and which keys a place of it allows."""

from __future__ import annotations

import types
import typing
from typing import Any

from pydantic import BaseModel

from gpuverdict.campaign.keys import Campaign

__all__ = ["key_table", "known_keys"]


def key_table() -> str:
    """Return a Markdown table of every key with its place, type and default.

    Examples
    --------
    >>> "| `campaign` |" in key_table()
    True
    """
    lines = ["| key | type | default | what |", "|---|---|---|---|"]

    def walk(model: type[BaseModel], prefix: str) -> None:
        for name, field in model.model_fields.items():
            if name in ("root", "path"):
                continue
            default = (
                "required" if field.is_required() else field.get_default(call_default_factory=True)
            )
            shown = (
                ""
                if default in (None, (), {})
                else str(default)
                if isinstance(default, str | int | float | bool | tuple)
                else ""
            )
            lines.append(f"| `{prefix}{name}` | {_type_name(field.annotation)} | {shown} | "
                         f"{field.description or ''} |")  # fmt: skip
            inner = model_in(field.annotation, dig=True)
            if inner is not None and inner.__name__ not in seen:
                seen.add(inner.__name__)
                walk(inner, f"{prefix}{name}.{'*.' if _repeats(field.annotation) else ''}")

    seen: set[str] = set()
    walk(Campaign, "")
    return "\n".join(lines)


def _repeats(annotation: Any) -> bool:
    """Tell whether a key holds several mappings, by name or in a list."""
    if typing.get_origin(annotation) in (dict, tuple, list):
        return model_in(annotation, dig=True) is not None
    return any(
        _repeats(argument)
        for argument in typing.get_args(annotation)
        if model_in(argument, dig=True) is not None
    )


def _type_name(annotation: Any) -> str:
    origin = typing.get_origin(annotation)
    if annotation is type(None):
        return "null"
    if origin in (typing.Union, types.UnionType):
        return " or ".join(n for n in map(_type_name, typing.get_args(annotation)) if n != "null")
    if origin is typing.Literal:
        return " or ".join(f"`{a}`" for a in typing.get_args(annotation))
    if origin is typing.Annotated:
        return _type_name(typing.get_args(annotation)[0])
    if origin in (tuple, list):
        return "list of " + _type_name(typing.get_args(annotation)[0])
    if origin is dict:
        return "mapping"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "mapping"
    return {str: "text", float: "number", int: "integer", bool: "true/false"}.get(annotation, "any")


def known_keys(loc: list[str]) -> set[str]:
    """Return the keys allowed at a place: models consume a field name, mappings any name."""
    annotation: Any = Campaign
    for part in loc:
        model = model_in(annotation, dig=True)
        if typing.get_origin(annotation) is dict or model is None or part not in model.model_fields:
            annotation = model  # the name of an arm, or a position in a list
        else:
            annotation = model.model_fields[part].annotation
    model = model_in(annotation, dig=True)
    return set(model.model_fields) - {"root", "path"} if model else set()


def model_in(annotation: Any, *, dig: bool) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in typing.get_args(annotation) if dig else ():
        found = model_in(argument, dig=True)
        if found is not None:
            return found
    return None
