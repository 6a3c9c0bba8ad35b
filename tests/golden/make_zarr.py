"""Write the folders of tests/golden/zarr: zarr arrays and groups, which Lowtide reads in place.

Usage: python make_zarr.py FOLDER

Run with Python 3.11, numpy 2.4.6 and zarr 3.1.6 from PyPI. expected.txt has one line per array,
fields separated by tabs: folder, key (empty if the folder is an array itself), dtype, shape, and
the elements in C order as hexadecimal digits; or folder, key, "refused" and what the message
contains.
"""

from __future__ import annotations

import shutil
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import zarr

Array = np.ndarray[Any, Any]
GRID = np.arange(7 * 5).reshape(7, 5)
# name -> dtype, fill value
TYPES: dict[str, tuple[Any, Any]] = {
    "b1": ("bool", True), "i1": ("i1", -5), "i2": ("<i2", -300), "i4": ("<i4", 7),
    "i8": ("<i8", -(2**62) - 1), "u1": ("u1", 200), "u2": ("<u2", 65535), "u4": ("<u4", 2**32 - 1),
    "u8": ("<u8", 2**64 - 1), "f2": ("<f2", 0.1), "f4": ("<f4", np.nan), "f8": ("<f8", -np.inf),
    "c8": ("<c8", complex(1.5, np.inf)), "c16": ("<c16", 2 - 3j), "tiny": ("<f2", 1e-7),
}  # fmt: skip
# Version 2 writes the byte order of the array; version 3 that of its codec.
TYPES_2 = {
    **TYPES, "big": (">f8", 2.5), "big_i": (">i4", -2), "big_c": (">c8", 1 + 2j),
    "S": ("S5", b"ab"), "U": ("<U3", "äb"), "big_U": (">U3", "äb"),
    "M": ("<M8[s]", 5), "m": ("<m8[ns]", -5),
    "fields": ([("x", "<i2"), ("y", ">f8")], None),
}  # fmt: skip
TYPES_3 = {
    **TYPES, "S": ("S5", b"ab"), "U": ("<U3", "äb"), "M": ("<M8[s]", 5), "m": ("<m8[10ns]", -5),
}  # fmt: skip


def write(array: Any, dtype: Any) -> None:
    """Writes the upper left of an array: other chunks stay the fill value."""
    data = np.zeros(GRID.shape, dtype)
    if data.dtype.names:
        data["x"] = GRID
    else:
        data[...] = GRID.astype(np.dtype(dtype)) if data.dtype.kind != "c" else GRID * (1 + 1j)
    array[:3, :3] = data[:3, :3]


def main(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir()
    lines: list[str] = []

    def told(name: str, key: str, array: Any) -> None:
        data = np.asarray(array[...])
        dtype = data.dtype.name if data.dtype.isnative else data.dtype.str
        if data.dtype.names or data.dtype.kind in "SUMm":
            dtype = repr(np.lib.format.dtype_to_descr(data.dtype))
        lines.append("\t".join([name, key, dtype, repr(data.shape), data.tobytes("C").hex()]))

    def refused(name: str, key: str, what: str) -> None:
        lines.append("\t".join([name, key, "refused", what]))

    for version, types in ((2, TYPES_2), (3, TYPES_3)):
        name = f"types{version}.zarr"
        group = zarr.open_group(folder / name, mode="w", zarr_format=version)
        for key, (dtype, fill) in types.items():
            given = {} if fill is None else {"fill_value": fill}
            array = group.create_array(
                key,
                shape=GRID.shape,
                chunks=(4, 3),
                dtype=np.dtype(dtype),
                compressors=None,
                **given,
            )
            write(array, dtype)
            told(name, key, array)

    # Shapes of chunks and shards; attributes that are not JSON; groups in groups.
    group = zarr.open_group(folder / "shapes.zarr", mode="w", zarr_format=3)
    cube = np.arange(5 * 4 * 6, dtype="<u2").reshape(5, 4, 6)
    shapes: dict[str, dict[str, Any]] = {
        "whole": {"chunks": (5, 4, 6)},
        "rows": {"chunks": (2, 4, 6)},
        "grid": {"chunks": (2, 3, 4)},
        "large": {"chunks": (9, 9, 9)},
        "in/groups/dots": {
            "chunks": (2, 3, 4),
            "chunk_key_encoding": {"name": "default", "separator": "."},
        },
        "v2_names": {"chunks": (2, 3, 4), "chunk_key_encoding": {"name": "v2", "separator": "."}},
        "shards": {"chunks": (2, 2, 3), "shards": (4, 4, 6)},
        "shards_of_rows": {"chunks": (1, 4, 6), "shards": (2, 4, 6)},
        "big_endian": {"chunks": (2, 3, 4), "serializer": zarr.codecs.BytesCodec(endian="big")},
    }
    for key, how in shapes.items():
        array = group.create_array(
            key, shape=cube.shape, dtype=cube.dtype, compressors=None, fill_value=9,
            attributes={"odd": float("nan")}, **how,
        )  # fmt: skip
        array[...] = cube
        told("shapes.zarr", key, array)
    inner = zarr.codecs.BytesCodec()
    start = zarr.codecs.ShardingCodec(
        chunk_shape=(2, 2, 3), codecs=[inner], index_codecs=[inner], index_location="start"
    )
    array = group.create_array(
        "index_at_start", shape=cube.shape, dtype=cube.dtype, chunks=(4, 4, 6), compressors=None,
        fill_value=9, serializer=start,
    )  # fmt: skip
    array[:3, :2] = cube[:3, :2]
    told("shapes.zarr", "index_at_start", array)
    array = group.create_array("scalar", shape=(), dtype="<f4", compressors=None)
    array[()] = 7.5
    told("shapes.zarr", "scalar", array)
    told("shapes.zarr", "empty", group.create_array("empty", shape=(0, 4), chunks=(2, 2), dtype="<f4", compressors=None))  # fmt: skip  # noqa: E501

    # Alone in a folder, with both separators of version 2 and an order without effect.
    for name, how in {
        "dots.zarr": {},
        "slashes.zarr": {"chunk_key_encoding": {"name": "v2", "separator": "/"}},
    }.items():
        array = zarr.create_array(
            folder / name, shape=(7,), chunks=(3,), dtype="<i4", compressors=None, order="F",
            zarr_format=2, **how,
        )  # fmt: skip
        array[2:] = 5
        told(name, "", array)

    # What is refused, and with which word.
    group = zarr.open_group(folder / "refused3.zarr", mode="w", zarr_format=3)
    plain = {"shape": (4, 4), "chunks": (2, 2), "dtype": "<f4"}
    group.create_array("zstd", **plain)
    refused("refused3.zarr", "zstd", "codec 'zstd'")
    group.create_array("gzip", compressors=zarr.codecs.GzipCodec(), **plain)
    refused("refused3.zarr", "gzip", "codec 'gzip'")
    group.create_array("blosc", compressors=zarr.codecs.BloscCodec(), **plain)
    refused("refused3.zarr", "blosc", "codec 'blosc'")
    group.create_array("crc", compressors=zarr.codecs.Crc32cCodec(), **plain)
    refused("refused3.zarr", "crc", "codec 'crc32c'")
    group.create_array("shards", shards=(4, 4), **plain)
    refused("refused3.zarr", "shards", "codec 'zstd'")
    group.create_array(
        "transposed", filters=[zarr.codecs.TransposeCodec(order=(1, 0))], compressors=None, **plain
    )
    refused("refused3.zarr", "transposed", "another order of axes")
    group.create_array("strings", shape=(4,), dtype=str, compressors=None)
    refused("refused3.zarr", "strings", "'vlen-utf8'")
    group = zarr.open_group(folder / "refused2.zarr", mode="w", zarr_format=2)
    group.create_array("blosc", **plain)
    refused("refused2.zarr", "blosc", "codec 'blosc'")
    group.create_array("fortran", compressors=None, order="F", **plain)
    refused("refused2.zarr", "fortran", "another order of axes")
    (folder / "expected.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(Path(sys.argv[1]))
