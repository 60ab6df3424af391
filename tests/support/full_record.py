"""A record in which every field of every part is filled, made from the models themselves."""

import json
import types
import typing
from collections.abc import Iterator
from enum import Enum
from typing import Any

from annotated_types import Gt
from mutations import Path, places
from png import PNG
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from ipyrefine.core.model import MAX_CELL
from ipyrefine.core.run import Run
from ipyrefine.core.stored import VERSION
from ipyrefine.session.record import as_json


def full_record(form: str = "code", *, coach: bool = False) -> dict[str, Any]:
    """Return the JSON of a run of two iterations with no field left empty.

    Args:
        form: how its texts are written.
        coach: whether it is a student's; every other run leaves that field empty.
    """
    run = _model(Run)
    [point] = run["points"].values()
    run["points"] = {point["id"]: point}
    first, second = run["iterations"][0], _model(typing.get_args(_hint(Run, "iterations"))[0])
    for text in (first, second):
        [result] = text["results"].values()
        text["results"] = {point["id"]: result}
    first |= {"number": 0, "parent": None}
    second |= {"number": 1, "parent": 0, "text": "another text", "override": None, "failure": ""}
    run |= {"iterations": [first, second], "best": 1, "head": 0, "stale": [0], "stage": None}
    run["setup"]["task"]["form"] = form
    run["stop_reason"] = "passed"
    if not coach:
        run["setup"]["attempts"] = None
    return {"version": VERSION, **as_json(Run.model_validate(run))}


def free_texts(record: dict[str, Any]) -> list[Path]:
    """Return the places of a record that take any text."""
    return [path for path in texts(record) if accepts(replaced(record, [path], "any\ntext"))]


def texts(record: dict[str, Any]) -> Iterator[Path]:
    """Yield the places of a record that hold a text."""
    for path in places(record):
        if isinstance(_value(record, path), str):
            yield path


def replaced(record: dict[str, Any], paths: list[Path], text: str) -> dict[str, Any]:
    """Return a record with a text at these places, cut where only a short one may stand."""
    changed = json.loads(json.dumps(record))
    for path in paths:
        short = not {"axes", "columns", "index", "labels", "rows", "values"}.isdisjoint(path)
        _value(changed, path[:-1])[path[-1]] = text[:MAX_CELL] if short else text
    return changed


def accepts(record: dict[str, Any]) -> bool:
    """Return whether a record is valid."""
    try:
        Run.model_validate({name: value for name, value in record.items() if name != "version"})
    except ValidationError:
        return False
    return True


def _value(content: Any, path: Path) -> Any:
    for step in path:
        content = content[step]
    return content


def _model(model: type[BaseModel], above: type[BaseModel] | None = None) -> dict[str, Any]:
    filled = dict[str, Any]()
    for name, field in model.model_fields.items():
        hint = _hint(model, name)
        if model in typing.get_args(hint):  # it has an end
            filled[name] = [] if above is model else [_model(model, model)]
        else:
            filled[name] = _filled(hint, name, field)
    return filled


def _hint(model: type[BaseModel], name: str) -> Any:
    return typing.get_type_hints(model, include_extras=False)[name]


def _filled(hint: Any, name: str, field: FieldInfo | None = None) -> Any:
    """Return a value of a type: every kind of a union in a list, else the first that is no None."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        kinds = [kind for kind in args if kind is not types.NoneType]
        return _filled(kinds[0], name, field)
    if origin is tuple and args[1:] != (...,):
        return [_filled(kind, name) for kind in args]
    if origin is tuple:
        kinds = typing.get_args(args[0]) if typing.get_origin(args[0]) is not None else ()
        several = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]
        return [_filled(kind, name) for kind in several or [args[0]]]
    if origin is dict:
        return {_filled(args[0], "key"): _filled(args[1], name)}
    if origin is typing.Literal:
        return args[0]
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        return _model(hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return next(iter(hint)).value
    if name == "png":
        return PNG
    if hint is str:
        return f"the {name}"
    if hint is bool:
        return True
    if hint in (int, float):
        bounds = [one for one in (field.metadata if field else ()) if isinstance(one, Gt)]
        return hint(bounds[0].gt + 1 if bounds else 1)
    raise TypeError(f"{name}: {hint}")
