"""The report in a real browser: no errors, true numbers, usable by mouse, finger and keyboard."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from browser import CHROMIUM, run_in_page

MIB = 1 << 20

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")

# What the scripts of these tests call.
PRELUDE = """
  const stage = document.getElementById('stage'), svg = stage.querySelector('svg');
  const box = svg.getBoundingClientRect();
  const point = (type, part, how = {}) => stage.dispatchEvent(new PointerEvent(type, {
    clientX: box.left + 80 + (box.width - 100) * part, clientY: box.top + 150, button: 0,
    pointerId: 1, pointerType: 'mouse', isPrimary: true, bubbles: true, ...how }));
  const key = (name) =>
    stage.dispatchEvent(new KeyboardEvent('keydown', { key: name, bubbles: true }));
  const ticks = () => [...svg.querySelectorAll('.tick')].map((one) => one.textContent);
  const told = () => document.getElementById('told').textContent;
  const tip = document.getElementById('tip');
"""


def trace_text(readings: int = 120, children: int = 0, path: str = "/data/train.bin") -> str:
    """A scan of a mapped file of 1 GiB within a minute, in the project's trace format."""
    lines = ['lowtide-trace 1 100 1790000000000 "Linux 6.18, 2 cores, 24 GiB" "python" "train.py"']
    for i in range(readings):
        part = i / readings
        mapped = int(1024 * part) * MIB
        line = f"r {60 * part:.3f}"
        for child in range(children + 1):
            heap, file = (100 + child) * MIB, 8 * MIB + (0 if child else mapped)
            line += (
                f' p {100 + child} {100 if child else 1} {5000 + child} "python" {heap} {file} 0'
                f' {2 * MIB} 0 ?"not asked now" 1 0 {0 if child else mapped} {mapped} 1'
            )
        if i % 10 == 0:
            line += f' F f "{path}" 1 2 {2048 * MIB} {mapped} {mapped} {mapped}'
            line += f' g "/sys/fs/cgroup/job" 2 {mapped + 300 * MIB} 1 2 3 4 {2048 * MIB} 0 0'
        lines.append(line)
        if i == readings // 2:
            lines.append(f'm {60 * part:.3f} "epoch 1"')
    lines.append("e 60 0 0.1")
    return "\n".join(lines) + "\n"


@pytest.fixture
def make(tmp_path: Path):
    """Writes a trace as a report of any suffix, with the command."""
    command = shutil.which("lowtide", path=str(Path(sys.executable).parent)) or shutil.which(
        "lowtide"
    )
    if command is None:
        pytest.skip("the command lowtide is not installed")

    def write(text: str, suffix: str = ".html") -> str:
        trace, out = tmp_path / "a.trace", tmp_path / f"a{suffix}"
        trace.write_text(text)
        subprocess.run([command, "profile", trace, "-o", out], check=True, timeout=60)
        return out.read_text(encoding="utf-8")

    return write


def browse(folder: Path, page: str, script: str, width: int = 1000) -> tuple[dict, str]:
    """The result of a script run in the report, and the page afterwards."""
    return run_in_page(folder, page, PRELUDE + script, width)


def test_axes_have_labels_with_units_and_nothing_overflows_a_phone(make, tmp_path: Path) -> None:
    page = make(trace_text(children=1))
    script = """
      result.axes = [...svg.querySelectorAll('.axis')].map((one) => one.textContent);
      result.ticks = ticks();
      result.width = innerWidth;
      result.wide = document.documentElement.scrollWidth - innerWidth;
      result.outside = [...svg.querySelectorAll('text')].filter((one) => {
        const at = one.getBoundingClientRect();
        return at.left < box.left - 1 || at.right > box.right + 1;
      }).map((one) => one.textContent);
    """
    for width in (1000, 360):
        result, _ = browse(tmp_path, page, script, width)
        assert result["width"] == width
        assert len(result["axes"]) == 3
        assert any(tick.endswith(("MiB", "GiB")) for tick in result["ticks"])
        assert any(tick.endswith("MiB/s") for tick in result["ticks"])
        assert any(tick.endswith((" s", " min")) for tick in result["ticks"])
        assert result["wide"] <= 0 and result["outside"] == []


def test_the_numbers_of_the_tables_are_those_of_the_json(make, tmp_path: Path) -> None:
    text = trace_text(children=2)
    page, facts = make(text), json.loads(make(text, ".json"))
    _, dom = browse(tmp_path, page, "")
    cells = re.findall(r'data-key="([\w.]+)"(?: data-bytes="(-?\d+)")?', dom)
    assert len(cells) == 3 * 7 + 4
    for key, shown in cells:
        value = facts
        for word in key.split("."):
            value = value[int(word)] if isinstance(value, list) else value[word]
        assert (int(shown) if shown else None) == value, key


def test_hovering_and_keys_tell_the_values_of_a_moment(make, tmp_path: Path) -> None:
    page = make(trace_text())
    result, _ = browse(
        tmp_path,
        page,
        """
        point('pointermove', 0.5);
        result.hovered = tip.hidden ? '' : tip.textContent;
        point('pointerleave', 0.5);
        result.left = tip.hidden;
        key('End');
        key('End');
        result.last = told();
        key('ArrowLeft');
        result.before = told();
        key('Escape');
        result.escaped = tip.hidden;
        """,
    )
    assert "heap" in result["hovered"] and "train.bin" in result["hovered"]
    assert "100 MiB" in result["hovered"]
    assert result["left"] and result["escaped"]
    assert (
        result["last"].startswith("59.5 s. held by processes") and "heap 100 MiB" in result["last"]
    )
    assert result["before"].startswith("59 s. ")


def test_dragging_and_keys_zoom_and_a_double_click_shows_all(make, tmp_path: Path) -> None:
    page = make(trace_text())
    result, _ = browse(
        tmp_path,
        page,
        """
        const whole = ticks().join();
        point('pointerdown', 0.25);
        point('pointermove', 0.5);
        point('pointerup', 0.5);
        result.dragged = told();
        stage.dispatchEvent(new MouseEvent('dblclick', { bubbles: true }));
        result.reset = ticks().join() === whole;
        key('+');
        result.nearer = told();
        key('-');
        result.back = ticks().join() === whole;
        for (let i = 0; i < 20; i += 1) key('+');
        result.nearest = ticks().filter((one) => one.endsWith(' s'));
        key('0');
        result.zero = ticks().join() === whole;
        """,
    )
    dragged = re.fullmatch(r"from ([\d.]+) s to ([\d.]+) s", result["dragged"])
    assert dragged
    assert float(dragged[1]) == pytest.approx(15, abs=1.5)
    assert float(dragged[2]) == pytest.approx(30, abs=1.5)
    assert result["nearer"] == "from 15 s to 45 s"
    assert result["reset"] and result["back"] and result["zero"]
    assert len(set(result["nearest"])) == len(result["nearest"]) > 2  # no label twice


def test_a_finger_zooms_asks_and_scrolls(make, tmp_path: Path) -> None:
    result, _ = browse(
        tmp_path,
        make(trace_text()),
        """
        const finger = (type, part, more) => point(type, part, { pointerType: 'touch', ...more });
        const lift = (part) => { finger('pointerup', part); finger('pointerleave', part); };
        finger('pointerdown', 0.5);
        lift(0.5);
        result.tapped = tip.hidden ? '' : tip.textContent;
        result.whole = told();
        finger('pointerdown', 0.25);
        finger('pointermove', 0.4);
        finger('pointermove', 0.9, { pointerId: 2, isPrimary: false });
        finger('pointerup', 0.9, { pointerId: 2, isPrimary: false });
        finger('pointermove', 0.5);
        lift(0.5);
        result.dragged = told();
        key('0');
        finger('pointerdown', 0.25);
        finger('pointermove', 0.4);
        finger('pointercancel', 0.4);
        finger('pointerleave', 0.4);
        result.scrolled = told();
        result.gone = tip.hidden && !svg.querySelector('.pick');
        result.style = getComputedStyle(stage).touchAction;
        """,
        width=360,
    )
    assert "heap100 MiB" in result["tapped"] and result["whole"] == ""
    dragged = re.fullmatch(r"from ([\d.]+) s to ([\d.]+) s", result["dragged"])
    assert dragged, result
    assert float(dragged[1]) == pytest.approx(15, abs=3)
    assert float(dragged[2]) == pytest.approx(30, abs=3)
    assert result["scrolled"] == "the whole run" and result["gone"]
    assert "pan-y" in result["style"]  # the page still scrolls


def test_layers_and_children_can_be_switched_off(make, tmp_path: Path) -> None:
    script = """
      const areas = () => svg.querySelectorAll('.area').length;
      result.all = areas();
      document.querySelector('#legend button').click();
      result.less = areas();
      result.pressed = document.querySelector('#legend button').getAttribute('aria-pressed');
      document.querySelector('#legend button').click();
      key('End');
      key('End');
      result.tree = told();
      const root = document.querySelector('input[value=root]');
      result.hidden = document.getElementById('views').hidden;
      root.click();
      key('End');
      result.root = told();
    """
    result, _ = browse(tmp_path, make(trace_text(children=2)), script)
    assert result["less"] == result["all"] - 1 and result["pressed"] == "false"
    assert not result["hidden"]
    assert "heap 303 MiB" in result["tree"] and "heap 100 MiB" in result["root"]
    alone, _ = browse(
        tmp_path, make(trace_text()), "result.h = document.getElementById('views').hidden;"
    )
    assert alone["h"]


def test_processes_are_told_apart_and_a_leak_has_its_line(make, tmp_path: Path) -> None:
    lines = trace_text(children=2).splitlines()
    for i, line in enumerate(lines):  # the second child keeps 4 MiB a reading
        if line.startswith("r "):
            before = f'"python" {102 * MIB} '
            assert before in line
            lines[i] = line.replace(before, f'"python" {(102 + 4 * i) * MIB} ')
    page = make("\n".join(lines) + "\n")
    result, _ = browse(
        tmp_path,
        page,
        """
        const labels = () => [...svg.querySelectorAll('.name')].map((one) => one.textContent);
        result.line = svg.querySelectorAll('.trend').length;
        result.labels = labels();
        document.querySelector('input[value=processes]').click();
        result.processes = [...document.querySelectorAll('#legend button')]
          .map((one) => one.dataset.title);
        result.still = svg.querySelectorAll('.trend').length;
        result.rows = [...document.querySelectorAll('#process-table tbody tr')]
          .map((one) => one.textContent);
        """,
    )
    assert result["line"] == 1 and any(one.startswith("leak: ") for one in result["labels"])
    for pid in (100, 101, 102):
        assert f"python (pid {pid})" in result["processes"]
    assert result["still"] == 0  # it belongs to the heap of all
    assert "pid 102" in result["rows"][0] and "leaks" in result["rows"][0]
    assert len(result["rows"]) == 3


@pytest.mark.parametrize("width", [390, 820, 1440])
def test_no_label_of_the_picture_lies_on_another(make, tmp_path: Path, width: int) -> None:
    script = """
      const boxes = [...svg.querySelectorAll('text')]
        .map((one) => [one, one.getBoundingClientRect()])
        .filter(([, box]) => box.width > 0);
      result.labels = boxes.length;
      result.met = [];
      boxes.forEach(([a, x], i) => boxes.slice(i + 1).forEach(([b, y]) => {
        const beside = x.left >= y.right - 1 || y.left >= x.right - 1;
        if (!beside && x.top < y.bottom - 3 && y.top < x.bottom - 3)
          result.met.push([a.textContent, b.textContent]);
      }));
      result.wide = document.documentElement.scrollWidth - innerWidth;
    """
    result, _ = browse(tmp_path, make(trace_text(children=1)), script, width)
    assert result["labels"] > 8 and result["met"] == [] and result["wide"] <= 0


def test_many_libraries_are_one_row_and_the_page_of_a_phone_stays_short(
    make, tmp_path: Path
) -> None:
    more = "".join(
        f' f "/usr/lib/lib{i}.so" 1 {i + 9} {8 * MIB} {MIB} {MIB} {2 * MIB}' for i in range(45)
    )
    text = trace_text().replace(' F f "', " F" + more + ' f "')
    result, _ = browse(
        tmp_path,
        make(text),
        """
        result.rows = document.querySelectorAll('#file-table tbody tr').length;
        result.folded = !document.querySelector('#file-table details').open;
        result.legend = [...document.querySelectorAll('#legend button')]
          .map((one) => one.textContent);
        result.height = document.documentElement.scrollHeight;
        """,
        width=390,
    )
    assert result["rows"] == 2 and result["folded"]
    assert sum(".so" in one for one in result["legend"]) == 0
    assert "mapped: libraries" in result["legend"]
    assert result["height"] < 3000


def test_a_hostile_name_is_text(make, tmp_path: Path) -> None:
    name = r"/tmp/</script><img src=x onerror=faults.push(1)>\x0a\xff.bin"
    result, dom = browse(
        tmp_path,
        make(trace_text(path=name)),
        """
        point('pointermove', 0.9);
        result.images = document.images.length;
        result.name = document.querySelector('#file-table .path').textContent;
        """,
    )
    assert result["images"] == 0
    assert "<img src=x onerror" in result["name"] and "\\n" in result["name"]
    assert dom.count("<script") == 4  # data, drawing, and the two of this test


@pytest.mark.parametrize("readings", [0, 1, 2])
def test_a_run_of_few_readings_is_a_page_too(make, tmp_path: Path, readings: int) -> None:
    text = trace_text(readings=readings)
    result, _ = browse(
        tmp_path,
        make(text),
        "['ArrowRight', '+', '-', '0', 'End'].forEach(key); point('pointermove', 0.5);"
        "result.bad = /NaN|Infinity|undefined/.test(document.body.innerHTML.split('<script')[0]);",
    )
    assert not result["bad"]
