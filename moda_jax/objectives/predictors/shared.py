"""One classifier for all domains."""

import jax
import jax.numpy as jnp

from moda_jax.objectives.forward import Answers, Forward, Params, State
from moda_jax.objectives.parts import Predictor


class Shared(Predictor):
  """One classifier, trained on all sources."""

  def answer(self, forward: Forward) -> Answers:
    """See the base class."""
    z, views = forward.features, self.method.classified_views
    groups = [z['source'], *(z[view][None] for view in views)]
    logits = forward.apply('classifier', jnp.concatenate(groups))
    by_view = {view: logits[self.count + i] for i, view in enumerate(views)}
    return Answers(logits[: self.count], by_view)

  def predict(self, params: Params, state: State, x: jax.Array) -> jax.Array:
    """See the base class."""
    z = self.method.extract(params, state, x)
    logits, _ = self.method.apply('classifier', params, state, z, train=False)
    return jax.nn.softmax(logits)
