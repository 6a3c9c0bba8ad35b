"""./dev wheels: every wheel that is shipped, and the sdist, into dist/. No container, one machine.

./dev wheels [WORD ...]       builds all, or those with a WORD in their names, such as cp310
./dev wheels list             the names
./dev wheels test [WORD ...]  tests what is in dist/, each wheel where it can run
"""

import sys

import audit
import places
import pythons
import wheel
from steps import Step, setup_tools
from targets import Target, chosen


def build_all(targets: list[Target]) -> int:
    setup_tools()
    interpreters = {abi: pythons.provide(abi) for abi in dict.fromkeys(t.abi for t in targets)}
    audit.check_sdist(wheel.sdist())
    wheel.man_page()
    large = []
    for target in targets:
        if python := interpreters[target.abi]:
            with Step(f"wheel {target.name}") as step:
                raw = wheel.build(target, python, step)
                repaired = audit.repair(target, raw, step)
                audit.check(target, repaired, step)
                kept = audit.keep(target, repaired)
                step.note = f"{kept.stat().st_size / 1e6:.2f} MB"
                if audit.too_large(kept):
                    large.append(target.name)
    missing = [target.name for target in targets if interpreters[target.abi] is None]
    for name in missing:
        print(f"{name}: not built, no interpreter")
    for name in large:
        print(f"{name}: not smaller than {audit.LARGEST_BYTES / 1e6:.0f} MB")
    return 1 if missing or large else 0


def main(words: list[str]) -> int:
    if words[:1] in (["-h"], ["--help"], ["help"]):
        print(__doc__)
        return 0
    if words[:1] == ["list"]:
        print("\n".join(target.name for target in chosen(words[1:])))
        return 0
    if words[:1] == ["test"]:
        return places.test_all(chosen(words[1:]))
    return build_all(chosen(words))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
