"""Runs the Python and shell blocks of one page in their order: docs_runner.py PAGE, in a folder.

Python blocks share their names, as cells of a notebook do. A shell block stops at the first command
that fails. `lowtide bench` and `lowtide demo` measure for a moment only.
"""

from __future__ import annotations

import subprocess
import sys
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from docs_blocks import Block, blocks  # noqa: E402

SHORT = """
lowtide() {
  case $1 in
  bench) shift; command lowtide bench --seconds 0.02 "$@" ;;
  demo) shift; command lowtide demo --seconds 0.1 --size 16MiB "$@" ;;
  *) command lowtide "$@" ;;
  esac
}
"""


def run(block: Block, names: dict[str, object]) -> None:
    if not block.is_safe:
        raise RuntimeError("it would change the machine: mark it with <!-- not run: why -->")
    if block.language == "sh":
        subprocess.run(["sh", "-eu"], input=SHORT + block.setup + block.code, text=True, check=True)
    else:
        exec(block.setup, names)
        code = "\n" * (block.line - 1) + block.code  # a traceback names the line of the page
        exec(compile(code, block.page, "exec"), names)


def main() -> int:
    names: dict[str, object] = {"__name__": "page"}
    for block in blocks(Path(sys.argv[1])):
        if not block.runs or block.language == "cpp":
            continue
        try:
            run(block, names)
        except BaseException:
            traceback.print_exc()
            print(f"{block.place}: this {block.language} block fails", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
