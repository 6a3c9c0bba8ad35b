"""A page in a real browser: runs a script in it and returns its result."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import escape, unescape
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium")

# At the end, `result` is written into the page as JSON.
DRIVER = """
<script>
(() => {
  const result = { errors: window.faults };
  try {
    %s
  } catch (error) {
    result.errors.push(String(error));
  }
  const out = document.createElement('pre');
  out.id = 'result';
  out.textContent = JSON.stringify(result);
  top.document.body.append(out);
})();
</script>
"""
CATCH = (
    "<script>window.faults = []; addEventListener('error', (e) => faults.push(e.message));</script>"
)


def run_in_page(
    folder: Path, page: str, script: str, width: int = 1000
) -> tuple[dict[str, Any], str]:
    """Returns `result` and the page after the script; fails on any error in the page."""
    assert CHROMIUM is not None
    file = folder / "driven.html"
    page = page.replace("<head>", "<head>" + CATCH, 1).replace(
        "</body>", DRIVER % script + "</body>"
    )
    if width < 500:  # a window of Chromium cannot be narrower, but a frame can
        page = f'<iframe width="{width}" height="1000" style="border:0" srcdoc="{escape(page)}">'
    file.write_text(page, encoding="utf-8")
    run = subprocess.run(
        [
            CHROMIUM,
            *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
            *("--hide-scrollbars", f"--user-data-dir={folder / 'browser'}"),
            *(
                "--enable-logging=stderr",
                f"--window-size={width},1200",
                "--virtual-time-budget=4000",
            ),
            *("--dump-dom", file.as_uri()),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    console = [line for line in run.stderr.splitlines() if "CONSOLE" in line]
    assert not console, console
    found = re.search(r'<pre id="result">(.*?)</pre>', run.stdout, re.DOTALL)
    assert found, run.stdout[-2000:] + run.stderr[-2000:]
    result = json.loads(unescape(found[1]))
    assert result["errors"] == []
    return result, run.stdout
