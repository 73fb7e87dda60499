"""The methods that have a name: rows of parts, and those of their own."""

from typing import NamedTuple

from moda_jax.objectives.composition import compose
from moda_jax.objectives.method import Method
from moda_jax.objectives.single_source import DannSS, MadaSS
from moda_jax.objectives.supervised import Supervised


class Row(NamedTuple):
  """A method's parts, what it is and where it is from."""

  weights: str
  alignment: str
  target_term: str
  predictor: str
  idea: str
  paper: str = ''


ROWS: dict[str, Row | type[Method]] = {
  'source_only': Row(
    *('uniform', 'none', 'none', 'shared'),
    'Mean class loss over the sources: the lower bound.',
  ),
  'dann_ss': DannSS,
  'dann_ms': Row(
    *('uniform', 'dann', 'none', 'shared'),
    'DANN on all sources, with equal weight.',
    'Ganin & Lempitsky 2015',
  ),
  'mada': Row(
    *('uniform', 'mada', 'none', 'shared'),
    'One discriminator per class, sources merged.',
    'Pei et al. 2018',
  ),
  'mada_ss': MadaSS,
  'mdan': Row(
    *('smooth_max', 'mdan', 'none', 'shared'),
    'One discriminator per source, the worst source leads.',
    'Zhao et al. 2018',
  ),
  'mdan_max': Row(
    *('hard_max', 'mdan', 'none', 'shared'),
    "MDAN's hard version.",
    'Zhao et al. 2018',
  ),
  'mdan_fm': Row(
    *('smooth_max', 'mdan', 'fixmatch', 'shared'), 'MDAN with consistency.'
  ),
  'moe': Row(
    *('sum', 'none', 'none', 'moe'),
    'One classifier per source, mixed by a learned metric.',
    'Guo et al. 2018',
  ),
  'm3sda': Row(
    *('sum', 'moments', 'none', 'experts'),
    'One classifier per source, moments of all domains matched.',
    'Peng et al. 2019',
  ),
  'moda': Row(
    *('softmax', 'dann', 'none', 'shared'),
    'Source weights α = softmax(β) learned with the network.',
    'Pernes & Cardoso',
  ),
  'fm': Row(
    *('uniform', 'none', 'fixmatch', 'shared'),
    'Consistency on the target, equal weights.',
    'Sohn et al. 2020',
  ),
  'moda_fm': Row(
    *('softmax', 'dann', 'fixmatch', 'shared'),
    'MODA with consistency.',
    'Pernes & Cardoso',
  ),
  'moda_fm_floored': Row(
    *('softmax+floored', 'dann', 'fixmatch', 'shared'),
    'MODA-FM with weights of at least ε/M.',
  ),
  'moda_fm_relative': Row(
    *('relative', 'dann', 'fixmatch', 'shared'),
    'MODA-FM with μ_s in units of the mean class loss.',
  ),
  'moda_fm_projected': Row(
    *('projected', 'dann', 'fixmatch', 'shared'),
    "MODA-FM with the objective's own best weights.",
  ),
  'moda_fm_darn': Row(
    *('darn', 'dann', 'fixmatch', 'shared'), "MODA-FM with DARN's weights."
  ),
  'dael': Row(
    *('uniform', 'none', 'dael', 'taught'),
    'One classifier per source, which teach one another.',
    'Zhou et al. 2021',
  ),
  'supervised': Supervised,
}


def _make(name: str, row: Row | type[Method]) -> type[Method]:
  """Returns the method of a row, a class of its own."""
  if not isinstance(row, Row):
    return row
  composed = compose(row.weights, row.alignment, row.target_term, row.predictor)
  values = {
    '__doc__': row.idea,
    '__module__': __name__,
    'paper': row.paper,
  }
  return type(name, (composed,), values)


METHODS = {name: _make(name, row) for name, row in ROWS.items()}
