"""The parts of an HTML page: sections, tables, pictures as SVG."""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

CSS = """
:root { color-scheme: light dark; --line: #8886; --back: #fff; --ink: #1a1a1a }
@media (prefers-color-scheme: dark) { :root { --back: #16181c; --ink: #e8e8e8 } }
* { box-sizing: border-box }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--back);
       max-width: 60rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere }
h1 { font-size: 1.6rem } h2 { font-size: 1.2rem; margin-top: 2rem }
.scroll { overflow-x: auto }
table { border-collapse: collapse }
th, td { text-align: left; padding: .25rem .8rem .25rem 0; vertical-align: top;
         border-bottom: 1px solid var(--line) }
.grid th, .grid td { white-space: nowrap }
pre { padding: .6rem; border: 1px solid var(--line); white-space: pre-wrap }
figure { margin: 1rem 0 }
figure svg { width: 100%; max-width: 36rem; height: auto; background: #fff }
figcaption { font-size: .9rem }
@media print { body { max-width: none } figure, tr { break-inside: avoid }
  h2 { break-after: avoid } figure svg { max-width: 26rem } }
"""


def page(title: str, css: str, parts: Sequence[str]) -> str:
    """A whole page."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><title>{escape(title)}</title>'
        f"<style>{css}</style></head><body><main><h1>{escape(title)}</h1>"
        f"{''.join(parts)}</main></body></html>"
    )


def section(title: str, body: str) -> str:
    """A heading and what is below it."""
    return f"<section><h2>{escape(title)}</h2>{body}</section>"


def table(rows: Sequence[Sequence[str]], head: Sequence[str] = ()) -> str:
    """Rows whose first cell names them."""
    body = "".join(
        f'<tr><th scope="row">{escape(first)}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in rest)
        + "</tr>"
        for first, *rest in rows
    )
    top = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    top = f"<thead><tr>{top}</tr></thead>" if head else ""
    kind = ' class="grid"' if head else ""  # it scrolls; words of a list wrap
    return f'<div class="scroll"><table{kind}>{top}<tbody>{body}</tbody></table></div>'


def figure(draw: Callable[[Any], Any], caption: str, alternative: str) -> str:
    """A picture, drawn on axes of its own, with words for those who do not see it."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    made = Figure(figsize=(5, 3.4), layout="constrained")  # its text is read on phones
    FigureCanvasSVG(made)
    draw(made.subplots())
    text = io.StringIO()
    # No date and no random names: the same model gives the same page.
    with rc_context({"svg.hashsalt": alternative}):
        made.savefig(text, format="svg", metadata={"Date": None})
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    # Pictures of one page must not share the names of their parts.
    own = f"{zlib.crc32(alternative.encode()):08x}-"
    svg = re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{own}", svg)
    named = f'<svg role="img" aria-label="{escape(alternative)}"'
    svg = svg.replace("<svg", named, 1)
    return f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>"
