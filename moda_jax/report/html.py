"""HTML with everything inside: nothing is fetched from anywhere."""

import base64
import html
import io
from collections.abc import Sequence

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from PIL import Image

escape = html.escape
_STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 66rem; color: #1b1b1b;
  margin: 0 auto; padding: 1rem; background: #fff; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: .6rem 0 .2rem; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .5rem; padding-top: .6rem;
  border-top: 1px solid #ddd; }
p { margin: .4rem 0; max-width: 46rem; }
.note, figcaption, th { color: #595959; } .note { font-size: .9rem; }
.big { font-size: 2.2rem; font-weight: 650; line-height: 1.2; }
.verdict { background: #eef5fa; border-left: 4px solid #0072B2;
  padding: .6rem .8rem; }
.warning { background: #fdf3e3; border-left: 4px solid #E69F00;
  padding: .6rem .8rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .95rem; }
td, th { padding: .3rem 1rem .3rem 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid #e5e5e5; overflow-wrap: normal; }
th { font-weight: 500; } td.number { font-variant-numeric: tabular-nums; }
td:first-child, .whole { white-space: nowrap; }
.bar { display: inline-block; height: .7rem; margin-right: .5rem;
  min-width: 1px; }
.grid { display: grid; gap: 1.2rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); }
.grid figure { max-width: 34rem; }
figure { margin: 0; } figure img { display: block; max-width: 100%;
  width: 100%; height: auto; }
figcaption { font-size: .9rem; margin: .2rem 0; }
figcaption b { color: #1b1b1b; font-weight: 600; }
.gallery { display: grid; gap: .8rem .6rem; max-width: 60rem;
  grid-template-columns: repeat(auto-fill, minmax(4.3rem, 1fr)); }
.gallery.paired { grid-template-columns:
  repeat(auto-fill, minmax(9.6rem, 1fr)); }
.gallery div div { display: flex; gap: .3rem; }
.gallery img { display: block; width: 100%; max-width: 6rem; min-width: 0;
  height: auto; border-radius: 3px; } .gallery img.small {
  image-rendering: pixelated; }
.gallery p { font-size: .8rem; line-height: 1.3; margin: .2rem 0 0; }
.used { color: #00664b; font-weight: 600; }
pre { background: #f5f5f5; padding: .8rem; overflow-x: auto;
  font-size: .8rem; white-space: pre-wrap; }
summary { cursor: pointer; padding: .3rem 0; }
"""
REFRESH = 'http-equiv="refresh"'  # in pages that browsers read again
# Text stays readable when a figure this wide is shown on a phone.
WIDTH = 4.5  # inches
_SHOWN = 96  # CSS pixels of a picture
_SHARP = 144  # pixels stored of one that has more


def document(title: str, sections: Sequence[str], refresh: int = 0) -> str:
  """Returns a whole page.

  Args:
    title: of the page, as text.
    sections: as HTML.
    refresh: after how many seconds a browser reads the page again; 0 for never.
  """
  again = f'<meta {REFRESH} content="{refresh}">' if refresh else ''
  return (
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    # A browser would otherwise ask a server for an icon.
    f'<link rel="icon" href="data:,">{again}'
    f'<title>{escape(title)}</title><style>{_STYLE}</style></head>\n<body>\n'
    + '\n'.join(section for section in sections if section)
    + '\n</body></html>\n'
  )


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
  """Returns a table; the cells are HTML."""
  if not rows:
    return ''
  head = ''.join(f'<th>{cell}</th>' for cell in header)
  body = ''.join(
    '<tr>' + ''.join(f'<td>{cell}</td>' for cell in row) + '</tr>'
    for row in rows
  )
  return (
    f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>'
    if head
    else f'<div class="wide"><table>{body}</table></div>'
  )


def bar(share: float, colour: str) -> str:
  """Returns a bar as long as a share of 1."""
  return (
    f'<span class="bar" style="width:{5 * share:.2f}rem;'
    f'background:{colour}"></span>'
  )


def figure(drawn: Figure, title: str, note: str = '') -> str:
  """Returns a figure with its title; a note says how to read it."""
  uri = to_uri(_to_svg(drawn), 'image/svg+xml')
  caption = f'<b>{escape(title)}</b>' + (f' {escape(note)}' if note else '')
  return (
    f'<figure><figcaption>{caption}</figcaption>'
    f'<img src="{uri}" alt="{escape(title)}"></figure>'
  )


def grid(figures: Sequence[str]) -> str:
  """Returns figures side by side, or below each other on a phone."""
  return f'<div class="grid">{"".join(figures)}</div>' if figures else ''


def gallery(cards: Sequence[tuple[Sequence[str], str]]) -> str:
  """Returns cards of pictures (as `img` elements) with captions as HTML."""
  paired = ' paired' if any(len(images) > 1 for images, _ in cards) else ''
  made = ''.join(
    f'<div><div>{"".join(images)}</div><p>{caption}</p></div>'
    for images, caption in cards
  )
  return f'<div class="gallery{paired}">{made}</div>'


def picture(pixels: np.ndarray, alt: str) -> str:
  """Returns an `img` of pixels `[H, W, 3]` in bytes, made small."""
  image = Image.fromarray(pixels)
  stored, kind = io.BytesIO(), 'PNG'
  small = ' class="small"' if max(image.size) < _SHOWN else ''
  if max(image.size) > _SHOWN:
    image.thumbnail((_SHARP, _SHARP))
    kind = 'JPEG'
  image.save(stored, kind)
  uri = to_uri(stored.getvalue(), f'image/{kind.lower()}')
  return f'<img{small} src="{uri}" alt="{escape(alt)}">'


def to_uri(data: bytes, kind: str) -> str:
  """Returns data as an address that holds it."""
  return f'data:{kind};base64,{base64.b64encode(data).decode()}'


def _to_svg(drawn: Figure) -> bytes:
  stored = io.BytesIO()
  # The same figure gives the same bytes: no date, no random names.
  with matplotlib.rc_context({'svg.hashsalt': 'moda_jax'}):
    drawn.savefig(stored, format='svg', metadata={'Date': None}, dpi=150)
  return stored.getvalue()
