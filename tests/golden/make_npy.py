"""Write the .npy files of tests/golden/npy with NumPy, and expected.txt beside them.

Usage: python make_npy.py FOLDER

expected.txt has one line a file, fields separated by tabs: name, descr, shape, fortran_order,
offset of the data, bytes of data. The values are what NumPy reads back.
"""

from __future__ import annotations

import struct
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

NESTED = np.dtype([("a", "<u2"), ("b", [("c", ">f8"), ("d", "S3")], (2,)), ("e", "<f4", (2, 3))])
PADDED = np.dtype(
    {"names": ["x", "y"], "formats": ["<i2", "<f8"], "offsets": [2, 8], "itemsize": 24}
)
TITLED = np.dtype([(("the x's title", "x"), "<f4"), (("höhe", "y"), "<i8")])
ALIGNED = np.dtype([("flag", "?"), ("value", "<f8")], align=True)

# name -> array, written by NumPy in the version that it chooses
ARRAYS: dict[str, np.ndarray[Any, Any]] = {
    "bool": np.array([True, False]),
    "int8": np.arange(3, dtype="i1"),
    "int16_big": np.arange(3, dtype=">i2"),
    "int64": np.arange(6, dtype="<i8").reshape(2, 3),
    "uint16": np.arange(3, dtype="<u2"),
    "float16": np.arange(3, dtype="<f2"),
    "float32_fortran": np.asfortranarray(np.arange(6, dtype="<f4").reshape(2, 3)),
    "float64_big": np.arange(3, dtype=">f8"),
    "longdouble": np.zeros(1, dtype=np.longdouble),
    "complex64": np.zeros(2, dtype="<c8"),
    "complex128_big": np.zeros(2, dtype=">c16"),
    "datetime_ns": np.zeros(2, dtype="<M8[ns]"),
    "datetime_25s": np.zeros(2, dtype=">M8[25s]"),
    "datetime_generic": np.zeros(2, dtype="<M8"),
    "timedelta_us": np.zeros(2, dtype="<m8[us]"),
    "bytes": np.array([b"ab", b"cde"]),
    "text": np.array(["añ", "cde"]),
    "text_big": np.array(["a", "bc"], dtype=">U2"),
    "void": np.zeros(2, dtype="V5"),
    "zero_d": np.array(7, dtype="<i4"),
    "zero_size": np.zeros((3, 0, 2), dtype="<f4"),
    "itemsize_zero": np.zeros(3, dtype="V0"),
    "structured": np.zeros(2, dtype=[("x", "<f4"), ("y", "<i8", (2,))]),
    "nested": np.zeros(2, dtype=NESTED),
    "padded": np.zeros(2, dtype=PADDED),
    "aligned": np.zeros(2, dtype=ALIGNED),
    "titled": np.zeros(2, dtype=TITLED),
    "empty_struct": np.zeros(2, dtype=[]),
    "name_latin1": np.zeros(2, dtype=[("größe", "<f4")]),
    "name_utf8": np.zeros(2, dtype=[("高さ", "<f4"), ("it's", "<f4"), ('a"\\\n', "u1")]),
}

VERSIONS = [(1, 0), (2, 0), (3, 0)]


def write_by_hand(path: Path, version: tuple[int, int], text: str, align: int, data: bytes) -> None:
    """Write what NumPy no longer writes: python-2 integers, padding to 16, no padding at all."""
    length_format = "<H" if version == (1, 0) else "<I"
    preamble = 8 + struct.calcsize(length_format)
    text += " " * (-(preamble + len(text) + 1) % align) + "\n"
    head = npy.magic(*version) + struct.pack(length_format, len(text))
    path.write_bytes(head + text.encode("latin1") + data)


def expectation(path: Path) -> str:
    array = np.load(path)
    raw = path.read_bytes()
    preamble = 10 if raw[6] == 1 else 12
    offset = preamble + int.from_bytes(raw[8:preamble], "little")
    descr = npy.dtype_to_descr(array.dtype)
    fortran_order = bool(array.flags.fnc)
    return f"{path.name}\t{descr!r}\t{array.shape!r}\t{fortran_order}\t{offset}\t{array.nbytes}\n"


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    for name, array in ARRAYS.items():
        with (folder / f"{name}.npy").open("wb") as file:
            npy.write_array(file, array)
    for version in VERSIONS:
        with (folder / f"version_{version[0]}.npy").open("wb") as file:
            npy.write_array(file, np.arange(2, dtype="<u4"), version=version)

    data = bytes(24)
    python2 = "{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3L), }"
    odd = "{ \"shape\":(2,\n\t3)  ,\r\n'fortran_order' :True,'descr':\f'<f4'}"
    write_by_hand(folder / "python2_long.npy", (1, 0), python2, 16, data)
    write_by_hand(folder / "odd_whitespace.npy", (2, 0), odd, 1, data)

    lines = [expectation(path) for path in sorted(folder.glob("*.npy"))]
    (folder / "expected.txt").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
