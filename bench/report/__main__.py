"""./dev bench report: puts the numbers of bench/results/*.json into README.md and the docs.

A page has a table between `<!-- table: NAME -->` and `<!-- end -->`; texts/ says what is in it.
Sentences with numbers are in texts/ as well. `--check` changes nothing and names what differs.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench" / "scenarios"))

from pages import Texts, read_results, texts_of  # noqa: E402
from pictures import drawn  # noqa: E402


def outdated(root: Path) -> dict[Path, str]:
    """The pages and pictures that differ from the results, and what they should contain."""
    results = read_results(root / "bench" / "results")
    texts = Texts(texts_of(root / "bench" / "report" / "texts"), results)
    wanted = {
        page: texts.fill(page, (root / page).read_text("utf-8")) for page in texts.pages(root)
    }
    wanted |= drawn(results)
    different = {}
    for name, text in wanted.items():
        path = root / name
        if not path.exists() or path.read_text("utf-8") != text:
            different[path] = text
    return different


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./dev bench report", description=__doc__)
    parser.add_argument("--check", action="store_true", help="only name the files that differ")
    told = parser.parse_args(argv)
    different = outdated(ROOT)
    for path, text in different.items():
        print(f"{path.relative_to(ROOT)} {'differs from bench/results' if told.check else 'made'}")
        if not told.check:
            path.write_text(text, "utf-8")
    return 1 if told.check and different else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
