"""Where the command `lowtide` of this installation is."""

from __future__ import annotations

import os


def scripts_folder() -> str:
    """The folder of the installed command; where it would be, if this build has none."""
    folders = _folders()
    for folder in folders:
        if os.path.isfile(os.path.join(folder, "lowtide")):
            return folder
    return folders[0]


def _folders() -> list[str]:
    """The folders of this installation only: a command on PATH may belong to another one."""
    import sysconfig

    found = _recorded()
    found.append(sysconfig.get_path("scripts"))
    found.append(sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user")))
    # pip install --target
    found.append(os.path.join(os.path.dirname(os.path.dirname(__file__)), "bin"))
    return found


def _recorded() -> list[str]:
    """The folders in the installer's own record."""
    from importlib import metadata

    try:
        files = metadata.files("lowtide") or []
    except metadata.PackageNotFoundError:
        return []
    commands = [file.locate() for file in files if file.parts[-2:] == ("bin", "lowtide")]
    return [os.path.realpath(os.path.dirname(str(command))) for command in commands]
