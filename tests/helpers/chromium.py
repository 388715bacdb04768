"""Opens pages in a real, headless browser and runs scripts in them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
_OPTIONS = (
    "--headless",
    "--no-sandbox",  # Chromium has no sandbox for root
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--virtual-time-budget=5000",
)
_POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
_ASK = """<script>
addEventListener("load", () => {{
  const returned = (() => {{ {script} }})();
  const loaded = performance.getEntriesByType("resource").map(entry => entry.name.slice(0, 40));
  const answer = JSON.stringify({{returned, loaded}});
  document.documentElement.dataset.answer = answer;
}});
</script>"""


def ask_page(page: str, script: str, folder: Path, *options: str) -> dict[str, Any]:
    """Return what `script` `returned` in the page, and what the page `loaded`."""
    # The page's policy would refuse the script.
    copy = _POLICY.sub("", page).replace("</body>", _ASK.format(script=script) + "</body>")
    found = re.search(r'data-answer="([^"]*)"', dump_dom(copy, folder, *options))
    assert found, "the script in the page failed"
    answer: dict[str, Any] = json.loads(unescape(found[1]))
    return answer


def dump_dom(page: str, folder: Path, *options: str) -> str:
    """Return the HTML of the page once the browser has loaded it."""
    file = folder / "page.html"
    file.write_text(page, encoding="utf-8")
    return _run(folder, "--dump-dom", *options, file.as_uri())


def print_page(page: str, folder: Path) -> bytes:
    """Return the page as a PDF."""
    file, pdf = folder / "page.html", folder / "page.pdf"
    file.write_text(page, encoding="utf-8")
    _run(folder, f"--print-to-pdf={pdf}", "--no-pdf-header-footer", file.as_uri())
    return pdf.read_bytes()


def _run(folder: Path, *arguments: str) -> str:
    assert CHROMIUM
    command = [CHROMIUM, *_OPTIONS, f"--user-data-dir={folder / 'profile'}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout
