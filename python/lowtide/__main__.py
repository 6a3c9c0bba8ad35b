"""`python -m lowtide`: the command `lowtide` of this installation."""

from __future__ import annotations

import os
import signal
import sys

from lowtide._command import scripts_folder


def main() -> None:
    """Becomes the command: exit code, signals and streams are its own."""
    path = os.path.join(scripts_folder(), "lowtide")
    # Python ignores these, and a program that is executed inherits that.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    try:
        os.execv(path, ["lowtide", *sys.argv[1:]])
    except FileNotFoundError:
        sys.exit(
            f"python -m lowtide: {path} does not exist: this build of Lowtide has no command. "
            "Install it again without LOWTIDE_COMMAND=OFF: pip install --force-reinstall lowtide"
        )
    except OSError as error:
        sys.exit(f"python -m lowtide: {path} cannot be run: {error.strerror}")


if __name__ == "__main__":
    main()
