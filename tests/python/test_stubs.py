"""The build generates the stub of the compiled module; the checked-in copy must be the same."""

from pathlib import Path

import lowtide

COPY = Path(__file__).resolve().parents[2] / "python/lowtide/_core.pyi"


def test_the_checked_in_stub_is_the_generated_one() -> None:
    generated = Path(lowtide.__file__).with_name("_core.pyi")
    assert generated != COPY
    assert COPY.read_text() == generated.read_text(), f"stale stub: cp {generated} {COPY}"


def test_the_package_says_that_it_is_typed() -> None:
    assert Path(lowtide.__file__).with_name("py.typed").is_file()
