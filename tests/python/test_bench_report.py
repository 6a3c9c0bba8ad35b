"""`./dev bench report`: the numbers of README and docs are those of bench/results."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from bench_runs import REPORT

ROOT = Path(__file__).parents[2]
TABLE = re.compile(r"<!-- table: \S+ -->\n(.*?)<!-- end -->", re.S)


@pytest.fixture
def texts(bench_module):
    pages = bench_module("pages")
    sources = pages.texts_of(REPORT / "texts")
    return pages.Texts(sources, pages.read_results(ROOT / "bench" / "results"))


def check(folder: Path) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, str(folder / "bench" / "report"), "--check"]
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)


def test_the_texts_have_the_numbers_of_the_result_files():
    done = check(ROOT)
    assert done.returncode == 0, f"run ./dev bench report\n{done.stdout}{done.stderr}"


def test_a_changed_digit_of_a_page_or_a_result_is_found(tmp_path):
    for name in ("README.md", "docs", "bench"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copyfile
        copy(ROOT / name, tmp_path / name)
    assert check(tmp_path).returncode == 0
    page = tmp_path / "docs" / "memmap.md"
    text = page.read_text()
    page.write_text(text.replace("| slices of 4096 rows | 1", "| slices of 4096 rows | 2"))
    done = check(tmp_path)
    assert (done.returncode, done.stdout) == (1, "docs/memmap.md differs from bench/results\n")
    subprocess.run([sys.executable, str(tmp_path / "bench" / "report")], check=True)
    assert page.read_text() == text
    result = tmp_path / "bench" / "results" / "memmap.json"
    result.write_text(result.read_text().replace('"rows_per_s": 1', '"rows_per_s": 2'))
    assert check(tmp_path).returncode == 1


def test_the_page_about_wheels_has_the_ratios_of_their_result_files():
    ratios = []
    for name in ("rows", "tokens"):
        result = ROOT / "bench" / "results" / f"against-wheel-{name}.json"
        ratios += [1 / bar["ratio"] for bar in json.loads(result.read_text())["bars"]]
    text = (ROOT / "docs" / "install.md").read_text()
    paragraph = text[text.index("as fast as a build with g++") :].partition("\n\n")[0]
    assert re.findall(r"\d\.\d\dx", paragraph) == [f"{ratio:.2f}x" for ratio in ratios]


def changed(text: str, at: int) -> str:
    return f"{text[:at]}{(int(text[at]) + 1) % 10}{text[at + 1 :]}"


def test_every_number_of_a_marked_table_is_made(texts):
    seen = 0
    for page in texts.pages(ROOT):
        text = (ROOT / page).read_text()
        for table in TABLE.finditer(text):
            digits = [table.start(1) + found.start() for found in re.finditer(r"\d", table[1])]
            for at in (digits[0], digits[len(digits) // 2], digits[-1]):
                assert texts.fill(page, changed(text, at)) == text, (page, table[0][:40])
                seen += 1
    assert seen > 30


def test_every_number_of_a_sentence_is_made(bench_module, texts):
    pages = bench_module("pages")
    for name, source in pages.texts_of(REPORT / "texts").items():
        measured = (ROOT / "bench" / "results" / f"{name}.json").exists()
        for page, sentence in source.prose if measured else []:
            text = (ROOT / page).read_text()
            parts = pages.NAMED.split(sentence)[::2]
            words = [r"\s+".join(map(re.escape, re.split(r"\s+", part))) for part in parts]
            found = re.search(f"({pages.NUMBER})".join(words), text)
            assert found, (page, sentence)
            for group in range(1, len(parts)):
                wrong = changed(text, found.start(group))
                assert texts.fill(Path(page), wrong) == text, (page, sentence)


def test_a_table_near_a_link_to_its_results_is_marked():
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for section in re.split(r"^## ", page.read_text(), flags=re.M):
            if re.search(r"bench/results/(?!against)", section):
                left = TABLE.sub("", section)
                assert not re.search(r"^\|", left, re.M), f"{page.name}: {section.splitlines()[0]}"


ROUNDS = {
    "hot-a": [
        {"rows_per_s": rate, "residency": "ok", "growth": 5 << 20} for rate in (2e3, 4e3, 9e3)
    ],
    "cold-a": [{"error": "killed: it needs more than 384 MiB", "residency": "ok"}],
    "cold-b": [{"error": "No module named 'peer'", "residency": "ok"}],
    "hot-c": [
        {"error": "ended by hand after 160 s: one worker was gone, one stood", "residency": "ok"}
    ],
    "hot-d": [{"rows_per_s": 1e6, "residency": "wrong"}, {"rows_per_s": 10.0, "residency": "ok"}],
}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hot-a: krow", "4.0"),
        ("hot-a: krow~", "2.0 - 9.0"),
        ("hot-a & hot-d: rows", "10 - 4,000"),
        ("hot-a & hot-d: rows^", "4,000"),
        ("hot-a / hot-d: rows", "400"),
        ("hot-a: grown", "5 MiB"),
        ("cold-a: krow", "killed: it needs more than 384 MiB"),
        ("cold-b: krow", "not measured"),
        ("hot-c: krow", "ended by hand after 160 s"),
        ("hot-d: requests", ""),
        ("facts: rows", "3,000,000"),
        ("facts: cgroup_bytes", "400"),
        ("rounds: most", "3"),
    ],
)
def test_a_number_has_one_form(bench_module, name, text):
    facts = {"rows": 3_000_000, "cgroup_bytes": 400 << 20}
    assert bench_module("values").Result({"facts": facts, "rounds": ROUNDS}).text(name) == text


def test_a_method_that_no_result_has_is_an_error(bench_module):
    with pytest.raises(KeyError, match="no rounds of hot-e"):
        bench_module("values").Result({"rounds": ROUNDS}).text("hot-a & hot-e: krow")


def test_lines_that_were_not_tried_are_left_out(bench_module):
    pages, values = bench_module("pages"), bench_module("values")
    table = "| m | hot | cold |\n|---|---|---|\n| a | {hot-a: krow} | {cold-x: krow} |\n"
    table += "| x | {hot-x: krow} | |\n"
    source = pages.Source({"some": table, "none": table.replace("hot-a", "hot-x")})
    texts = pages.Texts({"r": source}, {"r": values.Result({"rounds": ROUNDS})})
    assert texts.table("some") == "| m | hot | cold |\n|---|---|---|\n| a | 4.0 |  |\n"
    assert texts.table("none") == ""
    with pytest.raises(ValueError, match="no result has a table named other"):
        texts.fill(Path("p.md"), "<!-- table: other -->\n<!-- end -->\n")


def test_the_tables_of_peers_follow_from_their_keys(bench_module):
    labels = {
        "rows-hot-memmap": "np.memmap, kept",
        "rows-cold-memmap": "np.memmap, kept",
        "rows-hot-lowtide_loader": "lowtide, 256MiB",
        "rows-cold-fio": "fio",
        "startup-hot-memmap": "np.memmap, kept",
    }
    one = {"rate": 2e6, "first_batch_s": 0.012, "residency": "ok"}
    one |= {"group_anon": 3 << 20, "group_cache": 4 << 20, "group_file": 5 << 20}
    rounds = {key: [one] for key in labels} | {
        "rows-cold-fio": [{"error": "no", "residency": "ok"}]
    }
    result = bench_module("values").Result({"labels": labels, "rounds": rounds})
    texts = bench_module("pages").Texts({}, {"peers": result})
    assert texts.table("peers.rows").splitlines() == [
        "| rows: 1,000 samples/s | cached | memory, cached | on disk | memory, on disk |",
        "|---|---|---|---|---|",
        "| np.memmap, kept | 2,000 | 8 MiB | 2,000 | 7 MiB |",
        "| **lowtide, 256MiB** | 2,000 | 8 MiB |  |  |",
        "| fio |  |  | not measured | not measured |",
    ]
    assert texts.table("peers.startup").splitlines()[2] == "| np.memmap, kept | 12 | 8 MiB |"


def test_a_sentence_is_filled_wherever_its_lines_break(bench_module):
    pages, values = bench_module("pages"), bench_module("values")
    sentence = "it reads {hot-a: krow} krow/s in {hot-a: grown}, not {hot-d: rows}."
    source = pages.Source(prose=[("p.md", sentence)])
    texts = pages.Texts({"r": source}, {"r": values.Result({"rounds": ROUNDS})})
    assert texts.fill(Path("p.md"), "Here it\nreads 7 krow/s in 9 MiB,\nnot 1,000.\n") == (
        "Here it\nreads 4.0 krow/s in 5 MiB,\nnot 10.\n"
    )
    with pytest.raises(ValueError, match=r"p\.md has this sentence 0 times"):
        texts.fill(Path("p.md"), "Here it reads seven krow/s, not 1,000.\n")


def test_methods_that_share_no_valid_round_have_a_ratio_without_spread(bench_module):
    report = bench_module("report")
    killed, good = {"error": "killed", "residency": "not asked"}, {"residency": "ok"}
    rounds = {"a": [good | {"rate": 6.0}, killed], "b": [killed, good | {"rate": 2.0}]}
    bar = report.ratio_bar(rounds, ("work", "a", "b", 1.0), "rate")
    line = report.bars_table([bar]).splitlines()[-1]
    assert line.split() == ["work", ">=", "1", "x", "b", "3.00", "x", "PASS"]


def test_rounds_are_counted_for_each_scenario(bench_module):
    result = bench_module("values").Result({"rounds": {"rows-a": [{}] * 5, "scan-a": [{}] * 3}})
    assert [result.text(f"rounds: {name}") for name in ("most", "rows", "scan")] == ["5", "5", "3"]
