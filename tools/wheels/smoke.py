"""What every wheel must do where the whole suite takes too long, as under an emulator.

Run by the Python that has the wheel, in an empty folder. Needs NumPy only.
"""

import os
import subprocess
import sys
import sysconfig

import lowtide as lt
import numpy as np


def check_command() -> str:
    command = os.path.join(sysconfig.get_path("scripts"), "lowtide")
    version = subprocess.run([command, "--version"], check=True, capture_output=True, text=True)
    subprocess.run([command, "info", "m.npy"], check=True, capture_output=True)
    doctor = subprocess.run([command, "doctor"], check=True, capture_output=True, text=True)
    assert lt.__version__ in version.stdout, version.stdout
    folder = sysconfig.get_path("data")
    for file in ("share/man/man1/lowtide.1", "lib/lowtide/liblowtide_guard.so"):
        assert os.path.getsize(os.path.join(folder, file)) > 1000, file
    return doctor.stdout


def check_guard() -> None:
    """Around this Python, whose C library is the one that the preloaded library was built for."""
    command = os.path.join(sysconfig.get_path("scripts"), "lowtide")
    program = "import numpy; assert numpy.load('m.npy', mmap_mode='r')[-1, -1] == 149999"
    guard = [command, "guard", "--limit", "64MiB", sys.executable, "-c", program]
    done = subprocess.run(guard, check=True, stderr=subprocess.PIPE, text=True)
    assert "preload" not in done.stderr, done.stderr


def check_epoch(data: np.ndarray) -> str:
    seen = np.zeros(len(data), int)
    with lt.open("m.npy", memory="4MiB") as array:
        for index, rows in array.batches(64, order="shuffle", seed=1):
            np.testing.assert_array_equal(rows, data[index])
            seen[index] += 1
        engine = array.stats()["engine"]
    assert (seen == 1).all()
    return engine


def check_loader(tokens: np.ndarray) -> None:
    starts = []
    with lt.tokens("t.bin", dtype="uint16", memory="4MiB") as source:
        for batch in lt.Loader(source, batch_size=8, block_size=64, seed=1, epochs=1):
            x, y = np.asarray(batch.x), np.asarray(batch.y)
            np.testing.assert_array_equal(x[:, 1:], y[:, :-1])
            for row, last in zip(x, y[:, -1], strict=True):
                start = int(np.flatnonzero(tokens == row[0])[0])
                np.testing.assert_array_equal(tokens[start : start + 64], row)
                assert tokens[start + 64] == last
                starts.append(start)
    assert sorted(starts) == list(range(0, 64 * len(starts), 64)), "each window once"


def main() -> None:
    data = np.arange(5000 * 30, dtype=np.float32).reshape(5000, 30)
    np.save("m.npy", data)
    tokens = np.random.default_rng(0).permutation(40_000).astype(np.uint16)
    tokens.tofile("t.bin")
    engine = check_epoch(data)
    check_loader(tokens)
    check_command()
    check_guard()
    if "free-threading" in sys.version:
        assert not sys._is_gil_enabled(), "importing lowtide turned the GIL on"
    print(f"epoch, loader and command work; engine {engine}")


main()
