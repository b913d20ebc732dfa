"""HTML representations for notebooks: a table and a small SVG line plot, in the
colours of the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

#: Of the small picture, in pixels, and points along it.
PLOT_WIDTH_PX, PLOT_HEIGHT_PX, MAX_PLOT_POINTS = 220, 64, 200


def html_table(title: str, rows: Sequence[tuple[str, str]], figure: str = "") -> str:
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
        f"<tbody>{body}</tbody></table>{figure}</div>"
    )


def log_line_svg(values: np.ndarray, caption: str) -> str:
    """Positive values on a logarithmic scale as a line; "" where there are none."""
    shown = np.flatnonzero(values > 0)
    if len(shown) < 2:
        return ""
    shown = shown[np.linspace(0, len(shown) - 1, MAX_PLOT_POINTS).astype(int)]
    heights = np.log(values[shown])
    low, high = heights.min(), heights.max()
    x = 2 + (PLOT_WIDTH_PX - 4) * (shown - shown[0]) / (shown[-1] - shown[0])
    y = 2 + (PLOT_HEIGHT_PX - 4) * (high - heights) / (
        high - low if high > low else 1.0
    )
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    return (
        '<figure style="margin:0"><svg role="img" '
        f'width="{PLOT_WIDTH_PX}" height="{PLOT_HEIGHT_PX}" '
        f'viewBox="0 0 {PLOT_WIDTH_PX} {PLOT_HEIGHT_PX}">'
        f"<title>{escape(caption)}</title>"
        f'<polyline points="{points}" fill="none" stroke="currentColor" '
        'stroke-width="1.5"/></svg>'
        f'<figcaption style="font-size:smaller">{escape(caption)}</figcaption></figure>'
    )
