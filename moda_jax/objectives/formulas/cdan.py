"""CDAN (Long et al. 2018): features given what they are classified as.

K is the number of classes, F that of features, D the size of random maps.
"""

import math

import jax

LARGEST = 4096  # multilinear maps above this size are random, as in the paper
RANDOM_SIZE = 1024  # and then have this one, as in the authors' program
Maps = dict[str, jax.Array]  # 'features' [F, D] and 'classes' [K, D]


def draw_maps(rng: jax.Array, classes: int, features: int) -> Maps | None:
  """Returns R_f and R_g, drawn once and never trained; None for small maps."""
  if classes * features <= LARGEST:
    return None
  features_rng, classes_rng = jax.random.split(rng)
  return {
    'features': jax.random.normal(features_rng, (features, RANDOM_SIZE)),
    'classes': jax.random.normal(classes_rng, (classes, RANDOM_SIZE)),
  }


def condition(
  *, features: jax.Array, logits: jax.Array, maps: Maps | None = None
) -> jax.Array:
  """Returns what the discriminator sees: f ⊗ g, where g = softmax(logits).

  With `maps` it is the random multilinear map (R_f f) ⊙ (R_g g) / √D, whose
  inner products have those of f ⊗ g for their mean.

  No gradient flows through g, as in the authors' program: the paper's game is
  over f and g both. Its weights by entropy (CDAN+E) are left out.

  Args:
    features: f, `[…, F]`.
    logits: `[…, K]`.
    maps: see `draw_maps`.

  Returns:
    `[…, K · F]`, or `[…, D]` with `maps`.
  """
  g = jax.lax.stop_gradient(jax.nn.softmax(logits)).astype(features.dtype)
  if maps is None:
    product = g[..., :, None] * features[..., None, :]
    return product.reshape(*product.shape[:-2], -1)
  mapped = (features @ maps['features']) * (g @ maps['classes'])
  return mapped / math.sqrt(mapped.shape[-1])
