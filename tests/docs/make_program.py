"""Writes a program of all C++ blocks of README and docs: make_program.py OUT.

A block without main is the body of a function, with `use` and `train` of reader.h at hand.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from docs_blocks import Block, blocks, pages


def function(block: Block, number: int) -> str:
    """The block in a namespace of its own, without what it includes."""
    code = re.sub(r"^#include.*\n", "", block.setup + block.code, flags=re.M)
    if re.search(r"^int main\(\) \{", code, re.M):
        code = re.sub(r"^int main\(\)", "int run()", code, flags=re.M)
        code = code.rstrip().removesuffix("}") + "  return 0;\n}\n"
    else:
        code = f"int run() {{\n{code}  return 0;\n}}\n"
    line = f'#line {block.line} "{block.page}"'
    return f"namespace block_{number} {{\n{line}\n{code}}}\n"


def main() -> None:
    found = [block for page in pages() for block in blocks(page)]
    found = [block for block in found if block.language == "cpp" and block.runs]
    includes = {
        line
        for block in found
        for line in re.findall(r"^#include.*$", block.setup + block.code, re.M)
    }
    calls = "".join(
        f'  failed |= run_block("{block.place}", block_{number}::run);\n'
        for number, block in enumerate(found)
    )
    Path(sys.argv[1]).write_text(
        '#include "reader.h"\n'
        + "\n".join(sorted(includes))
        + "\n\n"
        + "\n".join(function(block, number) for number, block in enumerate(found))
        + '\n#line 1 "main"\nint main() {\n  const Folder folder;\n  bool failed = false;\n'
        + f"{calls}  return failed;\n}}\n"
    )


if __name__ == "__main__":
    main()
