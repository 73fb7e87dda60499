"""One classifier per source."""

import jax
import jax.numpy as jnp

from moda_jax.objectives.forward import Answers, Forward, Params, State
from moda_jax.objectives.parts import Predictor


class Experts(Predictor):
  """One classifier per source, on its own; the mean of all predicts.

  The mean is a plain one: a weighted one would need labels of the target.
  """

  paper = 'Peng et al. 2019'

  @property
  def heads(self) -> dict[str, int]:
    """One classifier per source."""
    return {'classifier': self.count}

  def answer(self, forward: Forward) -> Answers:
    """See the base class; each is given its own source and all views."""
    z, views = forward.features, self.method.classified_views
    shown = [jnp.broadcast_to(z[v], z['source'].shape) for v in views]
    x = jnp.stack([z['source'], *shown], axis=1)  # [M, 1 + views, B, …]
    logits = forward.apply('classifier', x)
    target = {v: log_mean(logits[:, i + 1]) for i, v in enumerate(views)}
    return Answers(logits[:, 0], target)

  def predict(self, params: Params, state: State, x: jax.Array) -> jax.Array:
    """See the base class."""
    z = self.method.extract(params, state, x)
    z = jnp.broadcast_to(z, (self.count, *z.shape))
    logits, _ = self.method.apply('classifier', params, state, z, train=False)
    return jax.nn.softmax(logits).mean(axis=0)


def log_mean(logits: jax.Array) -> jax.Array:
  """Returns the logarithm of the mean probability, `[M, B, C]` to `[B, C]`."""
  log_p = jax.nn.log_softmax(logits)
  return jax.nn.logsumexp(log_p, axis=0) - jnp.log(len(logits))
