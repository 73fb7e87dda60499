"""How the domains are brought together, by name in `ALIGNMENTS`."""

from moda_jax.objectives.alignment.cdan import Cdan
from moda_jax.objectives.alignment.coral import Coral
from moda_jax.objectives.alignment.dann import Dann
from moda_jax.objectives.alignment.mada import Mada
from moda_jax.objectives.alignment.mdan import Mdan
from moda_jax.objectives.alignment.mmd import Mmd
from moda_jax.objectives.alignment.moments import Moments
from moda_jax.objectives.alignment.none import NoAlignment
from moda_jax.objectives.parts import Alignment

ALIGNMENTS: dict[str, type[Alignment]] = {
  'none': NoAlignment,
  'dann': Dann,
  'mdan': Mdan,
  'mada': Mada,
  'moments': Moments,
  'mmd': Mmd,
  'cdan': Cdan,
  'coral': Coral,
}
