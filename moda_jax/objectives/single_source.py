"""Single-source methods: one independent copy per source, side by side."""

from typing import ClassVar

import jax

from moda_jax.objectives import metrics as names
from moda_jax.objectives.composition import compose
from moda_jax.objectives.forward import Forward, Metrics, Params, State
from moda_jax.objectives.method import Method


class SingleSource(Method):
  """Stacks and vmaps M copies of a method, each with one source.

  The copies share nothing: the sum of their losses has the gradients of each.
  They give one prediction each; which is best only target labels can tell.
  """

  copied: ClassVar[type[Method]]

  @property
  def depends_on_length(self) -> bool:  # type: ignore[override]
    """See the base class."""
    return self.copied.depends_on_length

  @property
  def predictors(self) -> tuple[str, ...]:
    """One copy per source."""
    return self.sources

  def init(self, rng: jax.Array, x: jax.Array) -> tuple[Params, State]:
    """See the base class; every array has the sources as its first axis."""
    keys = jax.random.split(rng, len(self.sources))
    return jax.vmap(self._copy().init, (0, None))(keys, x)

  def loss(self, forward: Forward) -> jax.Array:
    """See the base class."""
    copy = self._copy()

    def loss_of_one(
      params: Params, state: State, source: dict[str, jax.Array]
    ) -> tuple[jax.Array, tuple[Metrics, State]]:
      own = jax.tree.map(lambda x: x[None], source)  # [1, B, …]
      batch = forward.batch | {'source': own}
      return copy.loss_and_aux(params, state, batch, forward.rng, forward.step)

    losses, (metrics, forward.state) = jax.vmap(loss_of_one)(
      forward.params, forward.state, forward.batch['source']
    )
    forward.log_by_source(names.LOSS, losses)
    for name, values in metrics.items():
      if f'{name}/source' not in metrics:  # else the sum of what is named too
        forward.log_by_source(name.removesuffix('/source'), values)
    return losses.sum()

  def predict(self, params: Params, state: State, x: jax.Array) -> jax.Array:
    """Returns `[M, B, C]`, one prediction per source."""
    return jax.vmap(self._copy().predict, (0, 0, None))(params, state, x)

  def extract(self, params: Params, state: State, x: jax.Array) -> jax.Array:
    """Returns the features `[B, …]` of the first source's copy."""
    params, state = jax.tree.map(lambda leaf: leaf[0], (params, state))
    return self._copy().extract(params, state, x)

  def _copy(self) -> Method:
    return self.copied(
      self.networks, ('source',), self.options, self.axis_name, self.total_steps
    )


class DannSS(SingleSource):
  """DANN from each source alone; the best is chosen with target labels."""

  paper = 'Ganin & Lempitsky 2015'
  copied = compose('uniform', 'dann', 'none', 'shared')
  Options = copied.Options


class MadaSS(SingleSource):
  """MADA from each source alone, as in its paper."""

  paper = 'Pei et al. 2018'
  copied = compose('uniform', 'mada', 'none', 'shared')
