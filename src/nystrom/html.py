"""What notebooks show: a table that says what the text says, and a small picture.

Plain HTML and SVG in the colours of the page, so that it reads on a light page and on a
dark one; nothing is fetched, and nothing is run.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

#: Of the small picture, in pixels, and points along it.
WIDTH, HEIGHT, MOST_POINTS = 220, 64, 200


def table(title: str, rows: Sequence[tuple[str, str]], picture: str = "") -> str:
    """A title, names and values below each other, and a picture beside them."""
    cell = 'style="text-align:left;padding:1px 10px 1px 0;vertical-align:top"'
    body = "".join(
        f"<tr><th scope='row' {cell}>{escape(name)}</th>"
        f"<td {cell}>{escape(value)}</td></tr>"
        for name, value in rows
    )
    return (
        '<div style="color:inherit;display:flex;flex-wrap:wrap;gap:16px">'
        '<table style="border:none;background:none;color:inherit">'
        '<caption style="color:inherit;white-space:nowrap;'
        f'text-align:left;font-weight:bold;caption-side:top">{escape(title)}</caption>'
        f"<tbody>{body}</tbody></table>{picture}</div>"
    )


def falling_line(values: np.ndarray, caption: str) -> str:
    """Positive values on a logarithmic scale as a line; "" where there are none."""
    shown = np.flatnonzero(values > 0)
    if len(shown) < 2:
        return ""
    shown = shown[np.linspace(0, len(shown) - 1, MOST_POINTS).astype(int)]
    heights = np.log(values[shown])
    low, high = heights.min(), heights.max()
    x = 2 + (WIDTH - 4) * (shown - shown[0]) / (shown[-1] - shown[0])
    y = 2 + (HEIGHT - 4) * (high - heights) / (high - low if high > low else 1.0)
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    return (
        '<figure style="margin:0"><svg role="img" '
        f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}">'
        f"<title>{escape(caption)}</title>"
        f'<polyline points="{points}" fill="none" stroke="currentColor" '
        'stroke-width="1.5"/></svg>'
        f'<figcaption style="font-size:smaller">{escape(caption)}</figcaption></figure>'
    )
