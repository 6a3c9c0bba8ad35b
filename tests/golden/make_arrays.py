"""Write the files of tests/golden/arrays: arrays in formats of other tools, which Lowtide reads.

Usage: python make_arrays.py FOLDER

Run with Python 3.11, numpy 2.4.6, ml_dtypes 0.6.0, safetensors 0.8.0, faiss-cpu 1.15.1 and
diskannpy 0.7.0 from PyPI. expected.txt has one line per array, fields separated by tabs: file, key
(empty if the format has none), dtype, shape, order, and the elements in the file's order as
hexadecimal digits.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path
from typing import Any

import diskannpy
import ml_dtypes
import numpy as np
from faiss.contrib.vecs_io import bvecs_mmap, fvecs_write, ivecs_write
from safetensors import TensorSpec, serialize_file
from safetensors.numpy import save_file

Array = np.ndarray[Any, Any]
GRID = np.arange(6).reshape(2, 3)
# safetensors' name -> NumPy's
TENSORS = {
    "bool": "bool", "uint8": "u1", "int8": "i1", "int16": "<i2", "uint16": "<u2",
    "float16": "<f2", "int32": "<i4", "uint32": "<u4", "float32": "<f4", "int64": "<i8",
    "uint64": "<u8", "float64": "<f8", "complex64": "<c8", "bfloat16": ml_dtypes.bfloat16,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn, "float8_e5m2": ml_dtypes.float8_e5m2,
    "float8_e8m0fnu": ml_dtypes.float8_e8m0fnu, "float8_e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8_e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
}  # fmt: skip
NPZ: dict[str, Array] = {
    "f": GRID.astype("<f4"),
    "fortran": np.asfortranarray(GRID.astype("<i8")),
    "höhe/größe": GRID.astype(">i2"),
    "zero": np.zeros((0, 4), "<f8"),
    "scalar": np.array(7, "<u2"),
    "pair": np.array([(1, 2.5)], [("x", "<i2"), ("y", "<f8")]),
}


def main(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    lines: list[str] = []

    def told(name: str, key: str, array: Array) -> None:
        fortran = array.flags.f_contiguous and not array.flags.c_contiguous
        dtype = array.dtype.name if array.dtype.isnative else array.dtype.str
        if array.dtype.names:
            dtype = repr(np.lib.format.dtype_to_descr(array.dtype))
        order = "F" if fortran else "C"
        data = array.tobytes(order).hex()
        lines.append("\t".join([name, key, dtype, repr(array.shape), order, data]))

    def save_tensors(name: str, arrays: dict[str, Array], metadata: dict[str, str] | None) -> None:
        save_file(arrays, folder / name, metadata)
        for key, array in arrays.items():
            told(name, key, array)

    all_types = {f"x.{name}": GRID.astype(dtype) for name, dtype in TENSORS.items()}
    save_tensors("types.safetensors", all_types, None)
    odd = {"zero": np.zeros((0, 4), "<f4"), "scalar": np.array(7, "<i8"), 'ü "q" \\': GRID * 1.5}
    save_tensors("odd.safetensors", odd, {"format": "np", "made by": "a test"})
    save_tensors("one.safetensors", {"weight": GRID.astype("<f4")}, None)
    save_tensors("none.safetensors", {}, None)
    halves, plain = np.arange(6, dtype="u1"), GRID.astype("<f4")
    specs = {
        name: TensorSpec(dtype=dtype, shape=shape, data_ptr=data.ctypes.data, data_len=data.nbytes)
        for name, dtype, shape, data in [
            ("four_bits", "float4_e2m1fn_x2", (2, 3), halves),
            ("known", "float32", (2, 3), plain),
        ]
    }
    serialize_file(specs, folder / "newer.safetensors")
    told("newer.safetensors", "known", plain)

    def save_npz(name: str, arrays: dict[str, Array], compress: bool = False) -> None:
        (np.savez_compressed if compress else np.savez)(folder / name, **arrays)
        if not compress:
            for key, array in arrays.items():
                told(name, key, array)

    save_npz("several.npz", NPZ)
    save_npz("one.npz", {"arr_0": GRID.astype("<f8")})
    save_npz("compressed.npz", {"x": GRID}, compress=True)
    limit, zipfile.ZIP64_LIMIT = zipfile.ZIP64_LIMIT, 1  # as if it were larger than 2 GiB
    save_npz("zip64.npz", {"a": GRID.astype("<u1"), "b": GRID.astype("<c16")})
    zipfile.ZIP64_LIMIT = limit
    with zipfile.ZipFile(folder / "several.npz", "a") as archive:
        archive.writestr("README.txt", "Not an array.")
        archive.comment = b"A comment after the end record."

    def vectors(name: str, array: Array) -> Path:
        told(name, "", array)
        return folder / name

    fvecs_write(vectors("v.fvecs", GRID.astype("<f4")), GRID)
    ivecs_write(vectors("v.ivecs", GRID.astype("<i4")), GRID)
    small = GRID.astype("u1")
    with open(vectors("v.bvecs", small), "wb") as file:  # faiss only reads it
        for row in small:
            file.write(np.int32(3).tobytes() + row.tobytes())
    np.testing.assert_array_equal(bvecs_mmap(str(folder / "v.bvecs")), small)
    for name, dtype in {"v.fbin": "<f4", "v.u8bin": "u1", "v.i8bin": "i1"}.items():
        array = GRID.astype(dtype)
        diskannpy.vectors_to_file(str(vectors(name, array)), array)
    array = GRID.astype("<i4")
    with open(vectors("v.ibin", array), "wb") as file:
        diskannpy._files._write_bin(array, file)  # its public function knows fewer types
    (folder / "expected.txt").write_text("".join(f"{line}\n" for line in lines), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
