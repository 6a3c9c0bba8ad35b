"""Arrow files as pyarrow opens them, on the local disk or on a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from lowtide import _core
from lowtide._data.arrow_map import ObjectMap
from lowtide._data.files import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

FILE_MAGIC = b"ARROW1\0\0"


class Sources(NamedTuple):
    """Arrow files as they were when they were opened."""

    names: list[bytes]
    readers: list[_core.FileReader]


class Reader:
    """Opens a file with pyarrow. What pyarrow cannot read is a FormatError.

    The second value is the whole file as a buffer: the offsets of other buffers in the file follow
    from its address.
    """

    def __init__(self, sources: Sources, number: int) -> None:
        self._path, self._source = sources.names[number], sources.readers[number]
        self._name = shown(self._path, self._source)
        self._object: ObjectMap | None = None

    def __enter__(self) -> tuple[Any, Any]:
        try:
            import pyarrow
        except ImportError:
            raise _core.FormatError(
                f"{self._name}: this is an Arrow file; to open it, install pyarrow, which locates "
                "its data: pip install pyarrow"
            ) from None
        self._errors = (pyarrow.ArrowException, EOFError, ValueError, OSError)
        try:
            if _core.is_address(self._path):
                self._object = ObjectMap(self._source)
                whole = pyarrow.py_buffer(self._object.map)
                self._map = pyarrow.BufferReader(whole)
            else:
                self._map = pyarrow.memory_map(self._name)
                whole = self._map.read_buffer()
                self._map.seek(0)
            self._whole = whole
            return self._again(self._map), whole
        except self._errors as error:
            raise self._refused(error) from None

    def __exit__(self, kind: Any, error: BaseException | None, _: object) -> None:
        self._map.close()
        if isinstance(error, self._errors):
            raise self._refused(error) from None

    def _again(self, source: Any) -> Any:
        import pyarrow

        is_file = self._whole.slice(0, len(FILE_MAGIC)).to_pybytes() == FILE_MAGIC
        return (pyarrow.ipc.open_file if is_file else pyarrow.ipc.open_stream)(source)

    def bring_offsets(self, place: int) -> None:
        """Fetches the offsets of a column of lists; a local file already has them in memory."""
        import pyarrow

        if self._object is None:
            return
        ranges = []
        for batch in batches(self._again(pyarrow.BufferReader(self._whole))):
            column = getattr(batch.column(place), "storage", batch.column(place))
            offsets = column.buffers()[1]
            if len(column) and offsets is not None:
                ranges.append((offsets.address - self._whole.address, offsets.size))
        self._object.bring(ranges)

    def _refused(self, error: BaseException) -> BaseException:
        """Returns the exception to raise instead; if a server failed, its own error."""
        known = isinstance(error, _core.FormatError)
        failed = isinstance(error, OSError) and error.errno is not None
        if known or (failed and _core.is_address(self._path)):
            return error
        return _core.FormatError(f"{self._name}: pyarrow cannot read this Arrow file: {error}")


def batches(reader: Any) -> Iterator[Any]:
    if hasattr(reader, "num_record_batches"):
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number)
    else:
        yield from reader
