"""An extension of griffe for mkdocs.yml: a docstring shows the arguments it explains as a list."""

from __future__ import annotations

import re

import griffe

# "dtype, shape, offset (bytes): what is in a file"; further lines of it are indented.
_NAME = r"[a-z_]+(?: \([^)]*\))?"
_ARGUMENT = re.compile(rf"({_NAME}(?:, {_NAME})*): (.*)")


def as_lists(text: str) -> str:
    """`text` with each explained argument as an entry of a list."""
    lines: list[str] = []
    in_list = False
    for line in text.splitlines():
        found = _ARGUMENT.fullmatch(line)
        if found:
            if not in_list:
                lines.append("")
            names = re.sub(r"[a-z_]+(?![^(]*\))", lambda name: f"`{name[0]}`", found[1])
            lines.append(f"- {names}: {found[2]}")
            in_list = True
        elif in_list and line.startswith("    "):
            lines.append(f"  {line.strip()}")
        elif in_list and line:  # goes on with the entry above, as in the source
            lines.append(f"  {line}")
        else:
            lines.append(line)
            in_list = False
    return "\n".join(lines)


class Arguments(griffe.Extension):
    """Rewrites every docstring when it is loaded."""

    def on_instance(self, *, obj: griffe.Object, **_: object) -> None:
        """Called by griffe for each module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = as_lists(obj.docstring.value)
