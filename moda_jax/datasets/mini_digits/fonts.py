"""Numbers of one to three digits in printed fonts; the centre digit counts.

The test split is printed in fonts that no training number uses.
"""

import numpy as np

from moda_jax.datasets import font_digits

# A fixed list, so that another version of matplotlib gives the same numbers.
# Its symbol fonts are left out (some have other signs in the digits' places),
# and so is cmmi10, whose digits are oldstyle.
FONTS = {
  'train': (
    'DejaVuSans',
    'DejaVuSans-Bold',
    'DejaVuSans-Oblique',
    'DejaVuSansMono-Bold',
    'DejaVuSansMono-BoldOblique',
    'DejaVuSansMono-Oblique',
    'DejaVuSerif',
    'DejaVuSerif-Bold',
    'DejaVuSerif-Italic',
    'STIXGeneral',
    'STIXGeneralBol',
    'STIXGeneralBolIta',
    'cmb10',
    'cmr10',
    'cmti10',
    'cmtt10',
  ),
  'test': (
    'DejaVuSans-BoldOblique',
    'DejaVuSansMono',
    'DejaVuSerif-BoldItalic',
    'STIXGeneralItalic',
    'cmss10',
  ),
}
# Ids of the drawings, see `drawings.py`.
IDS = {'train': range(20_000, 24_000), 'test': range(24_000, 25_000)}

_SEED = 20_240_103


def choose_number(split: str, drawing: int) -> font_digits.Number:
  """Chooses how to print the number with this id, in a font of the split."""
  rng = np.random.RandomState([_SEED, drawing])
  return font_digits.choose_number(rng, drawing % 10, FONTS[split])
