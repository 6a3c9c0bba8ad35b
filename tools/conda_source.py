#!/usr/bin/env python3
"""Writes the version and the SHA-256 of an sdist into a conda recipe.

Usage: conda_source.py dist/lowtide-0.1.0.tar.gz [packaging/conda/recipe.yaml]
"""

import hashlib
import re
import sys
from pathlib import Path

RECIPE = Path(__file__).parents[1] / "packaging/conda/recipe.yaml"
NAME = re.compile(r"lowtide-([0-9.]+)\.tar\.gz")
VERSION = re.compile(r'^  version: ".*"', re.MULTILINE)
# Of the first source, which is the sdist.
SUM = re.compile(r'^    sha256: "?[0-9a-f]{64}"?', re.MULTILINE)


def with_source(recipe: str, sdist: Path) -> str:
    """The text of `recipe` for `sdist`."""
    name = NAME.fullmatch(sdist.name)
    if name is None:
        raise SystemExit(f"{sdist}: expected the sdist of a release, lowtide-X.Y.Z.tar.gz")
    found = hashlib.sha256(sdist.read_bytes()).hexdigest()
    recipe, versions = VERSION.subn(f'  version: "{name[1]}"', recipe, count=1)
    recipe, sums = SUM.subn(f'    sha256: "{found}"', recipe, count=1)
    if (versions, sums) != (1, 1):
        raise SystemExit("the recipe has no version or no sha256 where they are expected")
    return recipe


def main() -> None:
    if not 2 <= len(sys.argv) <= 3:
        raise SystemExit(__doc__)
    recipe = Path(sys.argv[2]) if len(sys.argv) == 3 else RECIPE
    recipe.write_text(with_source(recipe.read_text(), Path(sys.argv[1])))
    print(f"{recipe}: {sys.argv[1]}")


if __name__ == "__main__":
    main()
