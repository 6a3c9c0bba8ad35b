"""DLIO in its own interpreter: imported once, and forked for each run.

Importing DLIO, and TensorFlow with it, takes ten seconds; a run takes two. Each line of the input
is a task as JSON, and each line of the output is its answer. The only argument is the folder that
contains lowtide, because this environment may see another installation of it.
"""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

LIMIT_S = 120


def published(name: str) -> Any:
    """A workload as DLIO's own file has it."""
    import dlio_benchmark
    import yaml

    folder = Path(dlio_benchmark.__file__).parent / "configs" / "workload"
    return yaml.safe_load((folder / f"{name}.yaml").read_text(encoding="utf-8"))


def run(argv: list[str], log: str) -> str:
    """Runs DLIO in a child with these arguments; returns why it failed, or nothing."""
    child = os.fork()
    if child == 0:
        _run(argv, log)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return f"ended by signal {os.WTERMSIG(status)}"
    said = Path(log).read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return (said or ["failed"])[-1] if status else ""


def _run(argv: list[str], log: str) -> None:
    signal.alarm(LIMIT_S)  # ends a run that hangs
    code = 1
    try:
        fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(fd, 1)
        os.dup2(fd, 2)
        sys.argv = ["dlio_benchmark", *argv]
        _main()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _main() -> None:
    """As DLIO's own main, but MPI is not finalized: the transports of a forked one crash in it."""
    importlib.import_module("dlio_benchmark.utils.utility").DLIOMPI.get_instance().initialize()
    importlib.import_module("dlio_benchmark.main").run_benchmark()
    for process in multiprocessing.active_children():  # DLIO keeps its loader and its processes
        process.kill()
        process.join()


class ShortMap(dict[int, Any]):
    """A map of all samples. DLIO makes a text of it for each sample that it reads, for a message at
    a level that is off; with thousands of files that takes longer than reading them."""

    def __repr__(self) -> str:
        return f"{len(self)} samples"


def _shorten() -> None:
    arguments = importlib.import_module("dlio_benchmark.utils.config").ConfigArguments
    whole = arguments.get_global_map_index
    arguments.get_global_map_index = lambda *told: ShortMap(whole(*told))


def main(lowtide_folder: str) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what packages print is no answer
    importlib.import_module("dlio_benchmark.main")
    importlib.import_module("dlio_benchmark.framework.torch_framework")
    _shorten()
    sys.path.insert(0, lowtide_folder)  # not before: DLIO needs the packages of this environment
    importlib.import_module("lowtide")
    sys.path.pop(0)
    for line in sys.stdin:
        task = json.loads(line)
        answer = published(**task) if "name" in task else run(**task)
        print(json.dumps(answer), file=answers, flush=True)
    os._exit(0)  # MPI's own exit crashes after forks, too


if __name__ == "__main__":
    main(sys.argv[1])
