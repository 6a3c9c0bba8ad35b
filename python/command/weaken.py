"""Makes a module's references to Python weak, so that a program without Python can load it.

A dynamic linker refuses a library if it cannot find one of its undefined symbols, unless that is
weak: then it becomes null. In a Python all of them are found, as before. Linkers have no option
for this, so the binding of each symbol, half a byte of its entry in .dynsym, is changed in place.
Usage: weaken.py MODULE
"""

import struct
import sys
from collections.abc import Iterator
from pathlib import Path

DYNAMIC_SYMBOLS = 11  # SHT_DYNSYM
SYMBOL_BYTES = 24
GLOBAL, WEAK = 1, 2  # bindings
UNDEFINED = 0  # the section of a symbol that another file defines


def sections(elf: bytes) -> list[tuple[int, int, int, int]]:
    """Returns type, offset, size and link of each section."""
    if elf[:6] != b"\x7fELF\x02\x01":
        raise SystemExit("weaken.py: not a little-endian ELF file of 64 bits")
    (table,) = struct.unpack_from("<Q", elf, 0x28)
    entry_bytes, count = struct.unpack_from("<HH", elf, 0x3A)
    headers = [struct.unpack_from("<IIQQQQI", elf, table + i * entry_bytes) for i in range(count)]
    return [(kind, at, size, link) for _, kind, _, _, at, size, link in headers]


def python_symbols(elf: bytes) -> Iterator[int]:
    """Yields the offset of each undefined symbol of Python's."""
    known = sections(elf)
    for kind, start, size, link in known:
        if kind != DYNAMIC_SYMBOLS:
            continue
        names = known[link][1]
        for at in range(start, start + size, SYMBOL_BYTES):
            name, info, _, section = struct.unpack_from("<IBBH", elf, at)
            if section == UNDEFINED and info >> 4 == GLOBAL:
                if elf.startswith((b"Py", b"_Py"), names + name):
                    yield at


def main(path: Path) -> None:
    elf = bytearray(path.read_bytes())
    found = list(python_symbols(bytes(elf)))
    for at in found:
        elf[at + 4] = WEAK << 4 | elf[at + 4] & 0xF
    if found:  # else they are weak already
        path.write_bytes(elf)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
