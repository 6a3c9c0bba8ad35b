"""The check of layers fails on each kind of breach, and passes on the project."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def check(root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tools/check_layers.py"), str(root)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with the real table of rooms and no files."""
    (tmp_path / "ARCHITECTURE.md").write_text((ROOT / "ARCHITECTURE.md").read_text())
    return tmp_path


def write(project: Path, path: str, line: str) -> None:
    file = project / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"// A file.\n{line}\n")


def test_the_project_keeps_its_table() -> None:
    result = check(ROOT)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("src/engine/plan.cc", '#include "os/file.h"'),
        ("src/engine/plan.cc", '#include "engine/engine.h"'),
        ("src/engine/plan.cc", '#include "lowtide/error.h"'),
        ("src/face/array.cc", '#include "lowtide/array.h"'),
        ("src/inspect/info.cc", '#include "lowtide/array.h"'),
        ("src/report/json.cc", '#include "lowtide/profile.h"'),
        ("cli/info.cc", '#include "lowtide/command/json.h"'),
        ("include/lowtide/command/bench.h", '#include "lowtide/command/json.h"'),
        ("src/engine/plan.cc", "#include <vector>"),
        ("src/order/shuffle.cc", "#include <immintrin.h>"),
        ("src/os/file.cc", "#include <sys/stat.h>"),
        ("src/system/mount.cc", "#include <sys/vfs.h>"),
        ("src/http/curl.h", "#include <curl/curl.h>"),
        ("src/http/curl.cc", "#include <dlfcn.h>"),
        ("src/engine/http_lane.cc", '#include "http/transport.h"'),
        ("src/face/array.cc", '#include "loader/loader.h"'),
        ("include/lowtide/array.h", '#include "lowtide/error.h"'),
        ("python/bindings/module.cc", "#include <nanobind/nanobind.h>"),
        ("tests/order/shuffle_test.cc", '#include "os/file.h"'),
    ],
)
def test_a_right_include_passes(project: Path, path: str, line: str) -> None:
    write(project, path, line)
    result = check(project)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    ("path", "line", "rule"),
    [
        ("src/order/shuffle.cc", '#include "os/file.h"', "room order may include core"),
        ("src/core/error.cc", '#include "os/sys.h"', "room core may include no other room"),
        ("src/loader/pool.cc", '#include "format/npy.h"', "room loader may include core dataset"),
        ("src/engine/plan.cc", '#include "plan.h"', "room engine may include core http os"),
        ("src/engine/plan.cc", "#include <unistd.h>", "only src/os and src/system may"),
        ("src/face/array.cc", "#  include <sys/mman.h>", "only src/os and src/system may"),
        ("src/loader/pool.cc", "#include <liburing.h>", "only src/os may include it"),
        ("src/system/cuda.cc", "#include <liburing.h>", "only src/os may include it"),
        ("src/engine/http_lane.cc", "#include <curl/curl.h>", "only src/http may include it"),
        ("src/os/file.cc", "#include <curl/curl.h>", "only src/http may include it"),
        ("src/http/curl.cc", "#include <unistd.h>", "only src/os and src/system may"),
        ("src/os/files.cc", '#include "http/address.h"', "room os may include core"),
        ("src/engine/plan.cc", '#include "lowtide/array.h"', "rooms face implement it"),
        ("src/face/loader.cc", '#include "lowtide/profile.h"', "rooms meter report verdict"),
        ("src/face/loader.cc", '#include "lowtide/no.h"', "no room implements it"),
        ("include/lowtide/array.h", '#include "core/extent.h"', "only std lowtide/ may"),
        ("include/lowtide/array.h", '#include "lowtide/command/json.h"', "is not installed"),
        ("examples/rows.cc", '#include "lowtide/command/json.h"', "is not installed"),
        ("include/lowtide/array.h", "#include <fcntl.h>", "only std lowtide/ may"),
        ("python/bindings/module.cc", '#include "core/budget.h"', "only std lowtide/ nanobind/"),
        ("examples/rows.cc", '#include "os/file.h"', "only std lowtide/ may"),
    ],
)
def test_a_wrong_include_is_named_with_its_line_and_rule(
    project: Path, path: str, line: str, rule: str
) -> None:
    write(project, path, line)
    result = check(project)
    assert result.returncode == 1
    assert result.stdout.startswith(f"{path}:2: error: includes ")
    assert rule in result.stdout


@pytest.mark.parametrize(
    ("path", "line", "error"),
    [
        ("src/dataset/windows.cc", 'bool b = f == "llmc";', '"llmc": only rooms of formats'),
        ("src/face/open_tokens.cc", 'return ".idx"; // index', '".idx": only rooms of formats'),
        ("src/inspect/info.cc", '#include "token_format/llmc.h"', "ask the registry of formats"),
        ("cli/files.cc", 'check("old");', '"old": only rooms of formats'),
        ("python/lowtide/_data/open.py", 'FORMATS = ["llmc"]', '"llmc": only rooms of formats'),
    ],
)
def test_a_format_is_known_by_name_in_its_room_only(
    project: Path, path: str, line: str, error: str
) -> None:
    write(project, "src/token_format/llmc.h", "extern const TokenFormat kFormat;")
    words = '{.word = "llmc", .alias = "old", .index_suffix = ".idx"};'
    write(project, "src/token_format/llmc.cc", words)
    write(project, "src/face/open_array.cc", '// "llmc"\nfail("llmc.idx is missing");')
    assert check(project).returncode == 0
    write(project, path, line)
    if path.endswith(".py"):
        (project / path).write_text(f'"""Opens "llmc"."""\n{line}\n')
    result = check(project)
    assert result.returncode == 1
    assert result.stdout.startswith(f"{path}:2: error: ")
    assert error in result.stdout


def test_a_room_without_a_row_is_refused(project: Path) -> None:
    write(project, "src/utils/strings.cc", "#include <string>")
    result = check(project)
    assert result.returncode == 1
    assert "src/utils/ has no row in ARCHITECTURE.md" in result.stdout


def test_a_document_without_the_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ARCHITECTURE.md").write_text("# Architecture\n")
    result = check(tmp_path)
    assert result.returncode != 0
    assert "the tables of rooms and headers were not found" in result.stderr


def test_a_header_without_a_row_is_refused(project: Path) -> None:
    write(project, "include/lowtide/other.h", "#include <string>")
    result = check(project)
    assert result.returncode == 1
    assert result.stdout == "include/lowtide/other.h:1: error: it has no row in ARCHITECTURE.md\n"


@pytest.mark.parametrize(
    ("room", "file"),
    [
        ("src/engine", "file_{}.cc"),
        ("python/lowtide", "_file_{}.py"),
        ("python/lowtide/_data", "file_{}.py"),
    ],
)
def test_a_crowded_room_is_refused(project: Path, room: str, file: str) -> None:
    (project / room).mkdir(parents=True, exist_ok=True)
    for number in range(31):
        (project / room / file.format(number)).touch()
    result = check(project)
    assert result.returncode == 1
    assert result.stdout == f"{room}:1: error: 31 files; a room has at most 30\n"


def test_two_types_of_one_name_are_refused(project: Path) -> None:
    for room in ("job", "meter"):
        write(project, f"src/{room}/watch.h", "namespace lowtide {\nclass Watch final {\n};\n}")
    result = check(project)
    assert result.returncode == 1
    assert "src/meter/watch.h:3: error: Watch is also defined in src/job/watch.h" in result.stdout
