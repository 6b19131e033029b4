"""The parameters of a notebook: what it declares, and whether the given ones fit.

papermill only logs an unknown parameter and does not know a type from a name; a misspelt one would
run silently with its default. So the `parameters` cell is read here, before a kernel starts.
"""

from __future__ import annotations

import ast
import difflib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuverdict.errors import ParameterError

__all__ = ["Declared", "check_parameters", "declared_parameters"]

_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,), "int": (int,), "float": (int, float), "bool": (bool,),
    "list": (list, tuple), "tuple": (list, tuple), "dict": (dict,), "None": (type(None),),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """One parameter of a notebook: its annotation (None without one) and its default's source."""

    annotation: str | None
    default: str


def declared_parameters(notebook: str | Path) -> dict[str, Declared]:
    """List the parameters a notebook declares in the cell tagged `parameters`.

    Raises
    ------
    ParameterError
        When the file is no notebook, no cell is tagged, or the cell is no plain assignments:
        papermill would override nothing.

    Examples
    --------
    >>> sorted(declared_parameters("notebooks/report.ipynb"))[:2]
    ['campaign', 'comparison']
    """
    path = Path(notebook)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        cells = [cell for cell in content["cells"] if isinstance(cell, dict)]
    except OSError as problem:
        raise ParameterError(
            path, found=str(problem.strerror).lower(), expected="a notebook"
        ) from None
    except (ValueError, KeyError, TypeError):
        raise ParameterError(path, found="no notebook", expected="a Jupyter notebook") from None
    tagged = [c for c in cells if "parameters" in c.get("metadata", {}).get("tags", [])]
    if len(tagged) != 1:
        raise ParameterError(
            path, found=f"{len(tagged)} cells tagged `parameters`", expected="exactly one"
        )
    source = "".join(tagged[0]["source"])
    try:
        tree = ast.parse(source)
    except SyntaxError as problem:
        raise ParameterError(
            f"{path}: parameters", found=f"a syntax error ({problem.msg})"
        ) from None
    declared: dict[str, Declared] = {}
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            declared[node.target.id] = Declared(
                annotation=ast.unparse(node.annotation), default=ast.unparse(node.value)
            )
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(
            node.targets[0], ast.Name
        ):  # fmt: skip
            declared[node.targets[0].id] = Declared(
                annotation=None, default=ast.unparse(node.value)
            )
    return declared


def check_parameters(notebook: str | Path, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters if the notebook declares all of them with fitting types.

    Raises
    ------
    ParameterError
        For an unknown name (with the nearest known one), a value of another type, and NaN or
        infinity: the notebook's metadata would no longer be JSON.
    """
    declared = declared_parameters(notebook)
    name = Path(notebook).name
    for key, value in parameters.items():
        if key not in declared:
            near = difflib.get_close_matches(key, declared, n=1)
            raise ParameterError(
                f"{name}: {key}", found="an unknown parameter",
                expected=near[0] if near else f"one of {', '.join(declared)}",
            )  # fmt: skip
        _refuse_non_finite(f"{name}: {key}", value)
        annotation = declared[key].annotation
        if annotation is not None and not _fits(value, annotation):
            raise ParameterError(f"{name}: {key}", found=repr(value)[:80], expected=annotation)
    return dict(parameters)


def _refuse_non_finite(where: str, value: Any) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise ParameterError(where, found=repr(value), expected="a finite number or null")
    if isinstance(value, Mapping):
        for item in value.values():
            _refuse_non_finite(where, item)
    elif isinstance(value, list | tuple):
        for item in value:
            _refuse_non_finite(where, item)


def _fits(value: Any, annotation: str) -> bool:
    """Tell whether a value is of one of the types of an annotation such as `None | str`."""
    tree = ast.parse(annotation, mode="eval").body
    for kind in _alternatives(tree):
        allowed = _TYPES.get(kind)
        if allowed is None:  # a type this check does not know is not its business
            return True
        if isinstance(value, allowed) and not (
            isinstance(value, bool) and kind in ("int", "float")
        ):
            return True
    return False


def _alternatives(node: ast.expr) -> list[str]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _alternatives(node.left) + _alternatives(node.right)
    if isinstance(node, ast.Subscript):
        head = ast.unparse(node.value).rsplit(".", 1)[-1]
        if head == "Optional":
            return ["None", *_alternatives(node.slice)]
        if head == "Union":
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            return [kind for part in parts for kind in _alternatives(part)]
        return [head]
    return [ast.unparse(node).rsplit(".", 1)[-1]]
