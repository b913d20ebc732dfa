"""Follow every link of the built pages: its target must exist.

    python docs/links.py build/docs

Anything that a page fetches from another host is an error: the site works offline.
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
        """Collect links and the names that they can point to."""
        found = dict(attributes)
        self.names |= {found[key] for key in ("id", "name") if found.get(key)}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        if tag in ("script", "img") and found.get("src"):
            self.fetched.append(found["src"])
        if tag == "link" and found.get("rel") == "stylesheet":
            self.fetched.append(found["href"])


def main() -> None:
    """List broken links; fail if there are any."""
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
        sys.exit(f"{len(wrong)} broken links")


if __name__ == "__main__":
    main()
