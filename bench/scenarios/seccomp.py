"""Forbids io_uring to this process, as container runtimes do: the calls fail with EPERM."""

from __future__ import annotations

import ctypes
import errno
import os

_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_SECCOMP = 22
_MODE_FILTER = 2
_LOAD_WORD = 0x20  # BPF_LD | BPF_W | BPF_ABS
_JUMP_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_RETURN = 0x06  # BPF_RET | BPF_K
_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
IO_URING_CALLS = (425, 426, 427)  # setup, enter, register; the same on every architecture here


class _Instruction(ctypes.Structure):
    _fields_ = [
        ("code", ctypes.c_uint16),
        ("jump_true", ctypes.c_uint8),
        ("jump_false", ctypes.c_uint8),
        ("k", ctypes.c_uint32),
    ]


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_uint16), ("filter", ctypes.POINTER(_Instruction))]


def forbid_io_uring() -> None:
    """Installs the filter for this process and its children; it cannot be removed.

    The filter checks only the call number, not the architecture. It is for measurements, not for
    protection.
    """
    refuse = len(IO_URING_CALLS) + 1
    code = [_Instruction(_LOAD_WORD, 0, 0, 0)]
    for place, number in enumerate(IO_URING_CALLS, start=1):
        code.append(_Instruction(_JUMP_EQUAL, refuse - place, 0, number))
    code.append(_Instruction(_RETURN, 0, 0, _ALLOW))
    code.append(_Instruction(_RETURN, 0, 0, _ERRNO | errno.EPERM))
    program = _Program(len(code), (_Instruction * len(code))(*code))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
        _PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(program), 0, 0
    ):
        number = ctypes.get_errno()
        raise OSError(number, f"the seccomp filter was refused: {os.strerror(number)}")
    if not io_uring_forbidden():
        raise OSError(errno.EINVAL, "io_uring still works despite the seccomp filter")


def io_uring_forbidden() -> bool:
    """Returns whether io_uring_setup is refused; a call without parameters creates no ring."""
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.syscall(IO_URING_CALLS[0], 1, None) == -1 and ctypes.get_errno() == errno.EPERM
