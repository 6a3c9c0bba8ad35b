"""The wheels that are shipped: every ABI on every platform, as one table."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Platform:
    """A machine and its C library, and what the tools call it."""

    name: str
    machine: str
    zig: str
    soabi: str
    tag: str

    @property
    def libc(self) -> str:
        return "musl" if "musl" in self.name else "glibc"


@dataclass(frozen=True)
class Abi:
    """What a Python must be to load a wheel. `version` is the Python that builds it."""

    name: str
    version: tuple[int, int]
    free_threaded: bool = False

    @property
    def stable(self) -> bool:
        return self.name.endswith("-abi3")

    @property
    def python_tag(self) -> str:
        return f"cp{self.version[0]}{self.version[1]}"

    @property
    def abi_tag(self) -> str:
        return "abi3" if self.stable else self.python_tag + "t" * self.free_threaded

    @property
    def python(self) -> str:
        """python3.13t"""
        return "python{}.{}".format(*self.version) + "t" * self.free_threaded


@dataclass(frozen=True)
class Target:
    abi: Abi
    platform: Platform

    @property
    def name(self) -> str:
        return f"{self.abi.name}-{self.platform.name}"

    @property
    def file_tags(self) -> str:
        """How the name of the wheel ends, as auditwheel writes it."""
        return f"{self.abi.python_tag}-{self.abi.abi_tag}-{self.platform.tag}"

    @property
    def extension_suffix(self) -> str:
        version = self.abi.python_tag.removeprefix("cp") + "t" * self.abi.free_threaded
        soabi = self.platform.soabi
        if self.abi.version < (3, 11):  # which did not tell musl from glibc, not even on Alpine
            soabi = soabi.replace("musl", "gnu")
        return f".cpython-{version}-{soabi}.so"


# glibc 2.28 is the oldest with memfd_create that manylinux has a name for.
PLATFORMS = (
    Platform(
        name="manylinux_x86_64",
        machine="x86_64",
        zig="x86_64-linux-gnu.2.28",
        soabi="x86_64-linux-gnu",
        tag="manylinux_2_28_x86_64",
    ),
    Platform(
        name="manylinux_aarch64",
        machine="aarch64",
        zig="aarch64-linux-gnu.2.28",
        soabi="aarch64-linux-gnu",
        tag="manylinux_2_28_aarch64",
    ),
    Platform(
        name="musllinux_x86_64",
        machine="x86_64",
        zig="x86_64-linux-musl",
        soabi="x86_64-linux-musl",
        tag="musllinux_1_2_x86_64",
    ),
)

ABIS = (
    Abi("cp310", (3, 10)),
    Abi("cp311", (3, 11)),
    Abi("cp312-abi3", (3, 12)),  # for 3.12 and every later Python
    Abi("cp313t", (3, 13), free_threaded=True),
    Abi("cp314t", (3, 14), free_threaded=True),
)

TARGETS = tuple(Target(abi, platform) for platform in PLATFORMS for abi in ABIS)


def chosen(words: list[str]) -> list[Target]:
    """The targets that a word is part of, such as "cp310" or "cp312-abi3-manylinux_x86_64"."""
    for word in words:
        if not any(word in target.name for target in TARGETS):
            known = "\n  ".join(target.name for target in TARGETS)
            raise SystemExit(f"./dev wheels {word}: no wheel has this in its name:\n  {known}")
    return [t for t in TARGETS if not words or any(word in t.name for word in words)]
