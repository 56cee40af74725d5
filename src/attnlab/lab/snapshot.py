"""A notebook's function that later cells cannot change."""

import builtins
import dis
import inspect
import types
from collections.abc import Callable, Iterator
from typing import Any


def as_now(function: Callable) -> Callable:
    """The same function, reading the values that the names it uses have now.

    Later cells may assign to these names, and to those that its helper functions use, without
    reaching it; only the values it uses stay in memory. Functions of the notebook are copied, also
    behind a decorator made with ``functools.wraps``; everything else is used as it is, so an object
    that a later cell changes in place is changed here too.
    """
    names: dict[str, Any] = {"__name__": "__main__", "__builtins__": builtins}
    copies: dict[types.FunctionType, types.FunctionType] = {}

    def copy(value: Any) -> Any:
        if not isinstance(value, types.FunctionType) or not _in_notebook(inspect.unwrap(value)):
            return value
        if value not in copies:
            copies[value] = made = types.FunctionType(
                value.__code__,
                names if _in_notebook(value) else value.__globals__,
                value.__name__,
                value.__defaults__ and tuple(map(copy, value.__defaults__)),
                tuple(types.CellType() if _function_in(cell) else cell
                      for cell in value.__closure__ or ()),
            )  # fmt: skip
            made.__kwdefaults__ = {k: copy(v) for k, v in (value.__kwdefaults__ or {}).items()}
            made.__dict__.update(value.__dict__)
            for old, new in zip(value.__closure__ or (), made.__closure__ or (), strict=True):
                if new is not old:
                    new.cell_contents = copy(old.cell_contents)
            for name in _globals_of(value.__code__) if _in_notebook(value) else ():
                if name in value.__globals__ and name not in names:
                    names[name] = copy(value.__globals__[name])
        return copies[value]

    return copy(function)


def _in_notebook(function: Callable) -> bool:
    return getattr(function, "__globals__", {}).get("__name__") == "__main__"


def _function_in(cell: types.CellType) -> bool:
    try:
        return isinstance(cell.cell_contents, types.FunctionType)
    except ValueError:  # nothing is in it yet
        return False


def _globals_of(code: types.CodeType) -> Iterator[str]:
    """The names that a function looks up in its module, and those of functions inside it."""
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield step.argval
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            yield from _globals_of(part)
