"""What `lowtide.info` and `lowtide.check` say about Arrow files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lowtide import _core
from lowtide._compute.blocks import blocks
from lowtide._data import arrow
from lowtide._data.array import Array
from lowtide._data.open_other import open_ragged

if TYPE_CHECKING:
    from lowtide._data.subject import Subject


def info(subject: Subject) -> dict[str, Any]:
    """Returns the dict of `lowtide.info`, with paths as the core returns them."""
    names, sources = subject.names, subject.sources
    assert sources is not None
    files = sources.names
    about = [_core.info([name], False, False, "|u1", None, None, None, None) for name in files]
    arrays = [_column(names, key) for key, _ in arrow.columns(sources)]
    one = arrays[0] if len(arrays) == 1 else {}
    cached = [file["cached"] for file in about]
    return {
        "path": names[0],
        "kind": "array",
        "format": "arrow",
        "dtype": one.get("dtype"),
        "shape": one.get("shape"),
        "order": one.get("order"),
        "bytes": sum(file["bytes"] for file in about),
        "shards": len(about),
        "cached": None if None in cached else sum(cached),
        "files": [file for one in about for file in one["files"]],
        "arrays": arrays,
    }


def check(subject: Subject, _count_nan: bool, memory_bytes: int) -> dict[str, Any]:
    """Returns the dict of `lowtide.check`, after all columns that can be read have been read."""
    found = info(subject)
    found["notes"] = []
    for about in found["arrays"]:
        if "error" in about:
            found["notes"].append(f"not checked: {about['error']}")
            continue
        with Array(subject.names, memory=memory_bytes, cache="drop", key=about["key"]) as array:
            for _ in blocks(array) if array.nbytes else ():
                pass
    return found


def _column(names: list[bytes], key: str) -> dict[str, Any]:
    try:
        ragged = open_ragged(names, key, {})
        array: Any = Array(names, key=key) if ragged is None else ragged.values
    except _core.FormatError as error:
        return {"key": key, "error": str(error)}
    with array:
        return {
            "key": key if ragged is None else f"{key}/values",
            "dtype": array.dtype.name if array.dtype.kind in "biuf" else array.dtype.str,
            "shape": array.shape,
            "order": "C",
            "bytes": array.nbytes,
        }
