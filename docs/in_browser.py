"""Open every built page in a browser of 390 pixels, as on a phone, and of 1400.

    python docs/in_browser.py build/docs

Errors are: text that is cut off, a picture that does not load, a formula that is not
drawn, anything fetched from another host, a message on the console, and a search that
finds nothing. Without Chromium it says so and checks nothing.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
OPTIONS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"]
OPTIONS += ["--no-first-run", "--disable-background-networking", "--disable-sync"]
OPTIONS += ["--disable-component-update", "--allow-file-access-from-files"]
# Nothing leaves the machine: other hosts cannot be reached.
OPTIONS += ["--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr"]
SEARCHED = "landmarks"

#: One frame shows the pages in turn. Code and tables may scroll by themselves.
LOOKING = """<meta charset="utf-8"><body><iframe height="900"></iframe>
<script>
const frame = document.querySelector('iframe'), wrong = [];
const shown = path => new Promise(done => {
  frame.onload = () => done(frame.contentDocument); frame.src = path; });
const scrolls = 'pre, table, div.math, p:has(> img)';
const parts = ':is(article, footer) :is(p, li, dt, dd, h1, h2, h3)';
function look(path, page) {
  const whole = page.documentElement;
  if (whole.scrollWidth > whole.clientWidth)
    wrong.push(`${path} is ${whole.scrollWidth} pixels wide`);
  for (const part of page.querySelectorAll(parts))
    if ((part.getBoundingClientRect().right > whole.clientWidth + 1
         || part.scrollWidth > part.clientWidth + 1) && !part.closest(scrolls)) {
      wrong.push(`${path} cuts off "${part.textContent.trim().slice(0, 40)}"`);
      break;
    }
  for (const formula of page.querySelectorAll('.math'))
    if (!formula.querySelector('.katex') || formula.querySelector('.katex-error'))
      wrong.push(`${path} does not draw ${formula.textContent}`);
  for (const picture of page.images)
    if (!picture.naturalWidth) wrong.push(`${path} has no ${picture.src}`);
  for (const asked of page.defaultView.performance.getEntriesByType('resource'))
    if (/^http/.test(asked.name)) wrong.push(`${path} fetches ${asked.name}`);
}
async function all(pages, search) {
  for (const width of [390, 1400]) {
    frame.width = width;
    for (const path of pages) look(path, await shown(path));
  }
  if (search) {
    const page = await shown(search);
    for (let wait = 0; wait < 50; wait++) {
      if (page.querySelector('#search-results li')) return;
      await new Promise(done => setTimeout(done, 100));
    }
    wrong.push(search + ' finds nothing');
  }
}
all(PAGES, SEARCH).then(() => {
  const found = JSON.stringify([...new Set(wrong)]);
  document.body.textContent = 'LOOKED' + found + 'END'; });
</script>"""


def complaints(folder: Path) -> list[str]:
    """What is wrong with the pages of a folder, a line for each."""
    found = folder.rglob("*.html")
    pages = sorted(path.as_uri() for path in found if "_static" not in path.parts)
    search = folder / "search.html"
    searched = f"{search.as_uri()}?q={SEARCHED}" if search.exists() else ""
    with tempfile.TemporaryDirectory() as scratch:
        outer = Path(scratch) / "outer.html"
        text = LOOKING.replace("PAGES", json.dumps(pages))
        outer.write_text(text.replace("SEARCH", json.dumps(searched)), encoding="utf-8")
        own = [f"--user-data-dir={scratch}/profile", "--virtual-time-budget=600000"]
        done = subprocess.run(
            [str(CHROMIUM), *OPTIONS, *own, "--dump-dom", outer.as_uri()],
            capture_output=True,
            text=True,
            timeout=600,
        )
    answer = re.search(r"LOOKED(.*)END", done.stdout, re.DOTALL)
    if answer is None:
        return ["the browser did not finish", done.stderr[-2000:]]
    # The theme logs what it does; everything else is a complaint.
    said = re.findall(r'CONSOLE.*?\] ("(?!\[PST\]: ).*)', done.stderr)
    return json.loads(answer[1]) + sorted({*said})


def main() -> None:
    """Say what is wrong; fail if anything is."""
    if CHROMIUM is None:
        print("no Chromium here: the pages were not opened in a browser")
        return
    folder = Path(sys.argv[1]).resolve()
    wrong = [line.replace(folder.as_uri() + "/", "") for line in complaints(folder)]
    print("\n".join(wrong))
    if wrong:
        sys.exit(f"{len(wrong)} complaints about the pages")


if __name__ == "__main__":
    main()
