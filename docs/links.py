"""Look at every link of the built pages: what it leads to must be there.

    python docs/links.py build/docs

What a page fetches from another host is an error: the pages are read offline.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links and the names of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.names: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list) -> None:
        """Collect what leads elsewhere, and what can be led to."""
        found = dict(attributes)
        self.names |= {found[key] for key in ("id", "name") if found.get(key)}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        if tag in ("script", "img") and found.get("src"):
            self.fetched.append(found["src"])
        if tag == "link" and found.get("rel") == "stylesheet":
            self.fetched.append(found["href"])


def main() -> None:
    """Say what leads nowhere; fail if anything does."""
    folder = Path(sys.argv[1]).resolve()
    found = (p for p in folder.rglob("*.html") if "_static" not in p.parts)
    pages = {path: Page(path) for path in found}
    wrong = []
    for path, page in pages.items():
        wrong += [
            f"{path.relative_to(folder)} fetches {link}"
            for link in page.fetched
            if urlsplit(link).scheme in ("http", "https")
        ]
        for link in [*page.links, *page.fetched]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (
                (path.parent / unquote(parts.path)).resolve() if parts.path else path
            )
            known = pages.get(target)
            named = not parts.fragment or known is None
            if not target.exists() or not (
                named or unquote(parts.fragment) in known.names
            ):
                wrong.append(f"{path.relative_to(folder)} links to {link}")
    print("\n".join(sorted({*wrong})))
    if wrong:
        sys.exit(f"{len(wrong)} links lead nowhere")


if __name__ == "__main__":
    main()
