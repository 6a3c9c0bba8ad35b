"""Opening an array."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lowtide import _arguments
from lowtide._core import FormatError
from lowtide._data.array import Array
from lowtide._data.files import is_folder_address
from lowtide._data.open_other import open_ragged, open_sparse

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from lowtide._data.array import Path


def open(
    path: Path | Sequence[Path],
    dtype: npt.DTypeLike | None = None,
    shape: int | Sequence[int] | None = None,
    offset: int | None = None,
    order: str | None = None,
    memory: int | str | None = None,
    engine: str = "auto",
    cache: str = "auto",
    gap: int | str | None = None,
    mode: str = "r",
    requests: int | None = None,
    store: Any = None,
    cache_dir: Path | None = None,
    cache_bytes: int | str | None = None,
    key: str | None = None,
) -> Array | Any:
    """Opens an array on disk for reading; reads only the headers.

    Args:
        path: A `.npy`, `.npz`, safetensors or HDF5 file, a file of vectors (fbin, fvecs and the
            like), a file without a header (which needs `dtype`, as with `np.memmap`), or a list of
            files, a glob or a folder of `.npy` files, which are joined along the first axis. A
            folder may also be a zarr array or group. A path that exists is never treated as a
            pattern. Instead of a path, the address of an object on a server: `http://`, `https://`
            or `s3://bucket/key`; with `s3://` or a `store` that lists, also a pattern, or a folder,
            which ends with "/".
        dtype: Type of the elements in a file without a header. For a `.npy` file, `dtype`,
            `shape`, `offset` and `order` may be omitted; if given, they must match the header. In
            other files with a header, a `dtype` without a `key` means that the bytes are raw data.
        shape: Shape of a file without a header; of all files together if there are several.
            Default: one axis that holds every element.
        offset: Byte at which the data of a file without a header starts. Default: 0.
        order: "C" or "F", the memory layout of a file without a header. Default: "C".
        memory: Most memory that Lowtide may hold, in bytes or as text such as "64KiB", "256MiB" or
            "1.5GiB". Default: 256 MiB, or an eighth of the memory that this process may use if
            that is less.
        engine: How bytes are read: "auto", "pread", "uring" or "memory". A named engine is never
            replaced by another one.
        cache: What happens to pages that reads bring into the page cache: "keep", "drop", or
            "auto", which keeps them if the data is under half of the available memory.
        gap: Largest distance between two disk reads that may share one request, in bytes or as
            text such as "4KiB". The bytes in between are read and discarded. None adapts it to the
            disk; 0 merges only reads that touch.
        mode: Must be "r"; accepted for code written for `np.memmap`. To write, use
            `lowtide.create` or `lowtide.memmap`.
        requests: Most requests to servers that are in flight at a time. Default: 128.
        store: What signs requests for objects: a store of obstore, or a callable that takes an
            address and returns `(url, headers, expires)`; `headers` is a dict or None, `expires`
            the seconds since 1970 or None. It may be called from any thread: again a minute before
            `expires`, and once after a server has refused a request. For patterns and folders, a
            callable needs a method `list` that takes a prefix and returns the addresses that begin
            with it. Default: `s3://` is signed with the keys of the environment or of the
            credentials file.
        cache_dir: Folder on a local disk that keeps objects as they are read, in blocks of 1 MiB.
            Later epochs and other processes read them there. Only for addresses.
        cache_bytes: Most that all processes together keep in `cache_dir`, in bytes or as text
            such as "200GiB". Default: as much as leaves a tenth of the file system free.
        key: Name of the array in a file that contains several: a tensor of a safetensors file, a
            member of an `.npz` (with or without ".npy"), the path of an HDF5 data set or of an
            array in a zarr group. It may be omitted if there is only one, and for the "X" of an
            `.h5ad`; otherwise FormatError lists the keys. `lowtide.info` lists them all.

    Returns:
        The open array, which reads from the files on demand. A sparse matrix is a `Csr`: the "X" of
        an `.h5ad`, a layer of it (`key="layers/counts"`), or a folder of BioNeMo-SCDL. A column of
        lists of an Arrow file is `Ragged`.

    Raises:
        OSError: A file cannot be opened (FileNotFoundError if it is missing), the named engine is
            not available, or a server fails.
        FormatError: The bytes contradict the header or the arguments.
        ValueError: An argument is invalid, `key` was given for a file with one array that has no
            name, or `memory` is too small for one row.
        TypeError: An argument has the wrong type.
    """
    if _arguments.word(mode, "mode") not in ("r", "readonly"):
        raise ValueError(
            f"mode must be 'r', not {mode!r}: lowtide.open only reads. For other modes use "
            "lowtide.memmap(path, ..., mode=...), an np.memmap within a memory limit"
        )
    if isinstance(dtype, str) and dtype in ("r", "rb", "r+", "w", "w+"):
        raise TypeError(
            f"the second argument is dtype, but {dtype!r} is a mode: lowtide.open only reads, so "
            "leave the mode out"
        )
    options = {
        "memory": memory, "engine": engine, "cache": cache, "gap": gap, "requests": requests,
        "store": store, "cache_dir": cache_dir, "cache_bytes": cache_bytes,
    }  # fmt: skip
    names, _ = _arguments.path_list(path)
    # A folder on a server is asked for what it may be; to see all its objects takes far longer.
    found: Any = None
    if len(names) == 1 and is_folder_address(names[0]):
        found = open_sparse(path, key, shape, options)
    try:
        if found is None:
            return Array(path, dtype, shape, offset, order, key=key, **options)
    except (FormatError, IsADirectoryError):
        found = open_sparse(path, key, shape, options)
        if found is None:
            found = open_ragged(path, key, options)
        if found is None:
            raise
    for name, value in (("dtype", dtype), ("offset", offset), ("order", order)):
        if value is not None:
            raise ValueError(f"{name} is for files without a header; leave it out")
    return found
