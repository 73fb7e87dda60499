"""Single-source methods: an independent copy a source, side by side."""

from typing import ClassVar

import jax

from moda_jax.objectives import dann, mada, method


class SingleSource(method.Method):
  """Stacks and vmaps M copies of a method, each with one source.

  The copies share nothing: the sum of their losses has the gradients of each.
  They give one prediction each; which is best only target labels can tell.
  """

  copied: ClassVar[type[method.Method]]

  @property
  def predictors(self) -> tuple[str, ...]:
    """One copy a source."""
    return self.sources

  def init(
    self, rng: jax.Array, x: jax.Array
  ) -> tuple[method.Params, method.State]:
    """See the base class; every array has the sources as its first axis."""
    keys = jax.random.split(rng, len(self.sources))
    return jax.vmap(self._copy().init, (0, None))(keys, x)

  def loss(
    self,
    params: method.Params,
    state: method.State,
    batch: method.Batch,
    rng: jax.Array,
    step: jax.Array,
  ) -> tuple[jax.Array, tuple[method.Metrics, method.State]]:
    """See the base class."""
    copy = self._copy()

    def loss_of_one(
      params: method.Params, state: method.State, source: dict[str, jax.Array]
    ) -> tuple[jax.Array, tuple[method.Metrics, method.State]]:
      own = jax.tree.map(lambda x: x[None], source)  # [1, B, …]
      return copy.loss(params, state, batch | {'source': own}, rng, step)

    losses, (metrics, state) = jax.vmap(loss_of_one)(
      params, state, batch['source']
    )
    named = self.by_source('loss', losses)
    for name, values in metrics.items():
      if f'{name}/source' not in metrics:  # else the sum of what is named too
        named |= self.by_source(name.removesuffix('/source'), values)
    return losses.sum(), (named, state)

  def predict(
    self, params: method.Params, state: method.State, x: jax.Array
  ) -> jax.Array:
    """Returns `[M, B, C]`, one prediction a source."""
    return jax.vmap(self._copy().predict, (0, 0, None))(params, state, x)

  def _copy(self) -> method.Method:
    return self.copied(
      self.networks, ('source',), self.config, self.axis_name, self.total_steps
    )


class DannSS(SingleSource):
  """DANN from each source alone."""

  copied = dann.DannMS


class MadaSS(SingleSource):
  """MADA from each source alone, as in its paper."""

  copied = mada.Mada
