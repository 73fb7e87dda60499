"""One classifier per source."""

import jax
import jax.numpy as jnp

from moda_jax.objectives.forward import Answers, Forward, Params, State
from moda_jax.objectives.parts import Predictor


class Experts(Predictor):
  """One classifier per source, trained on it alone; their mean predicts.

  The mean is a plain one: a weighted one would need labels of the target.
  """

  paper = 'Peng et al. 2019'
  has_experts = True

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
    experts = {view: logits[:, i + 1] for i, view in enumerate(views)}
    target = {view: log_mean(own) for view, own in experts.items()}
    return Answers(logits[:, 0], target, experts)

  def predict(self, params: Params, state: State, x: jax.Array) -> jax.Array:
    """See the base class."""
    z = self.method.extract(params, state, x)
    z = jnp.broadcast_to(z, (self.count, *z.shape))
    logits, _ = self.method.apply('classifier', params, state, z, train=False)
    return jax.nn.softmax(logits).mean(axis=0)


def answer_all(part: Predictor, forward: Forward) -> Answers:
  """Returns every expert's answers on everything; none for the target yet."""
  z, views = forward.features, part.method.classified_views
  x = jnp.concatenate([z['source'], *(z[view][None] for view in views)])
  x = jnp.broadcast_to(x, (part.count, *x.shape))
  logits = forward.apply('classifier', x)  # [M, M + views, B, C]
  source = logits[:, : part.count]
  own = jnp.moveaxis(jnp.diagonal(source), -1, 0)  # [M, B, C]
  experts = {v: logits[:, part.count + i] for i, v in enumerate(views)}
  return Answers(own, {}, {'source': source, **experts})


def log_mean(logits: jax.Array) -> jax.Array:
  """Returns the logarithm of the mean probability, `[M, B, C]` to `[B, C]`."""
  log_p = jax.nn.log_softmax(logits)
  return jax.nn.logsumexp(log_p, axis=0) - jnp.log(len(logits))
