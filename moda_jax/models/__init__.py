"""Extractor, classifier and discriminator of each experiment, by name."""

from collections.abc import Callable

from moda_jax.models import digits, resnet, reviews
from moda_jax.models.networks import Networks

NETWORKS: dict[str, Callable[..., Networks]] = {
  'digits': digits.create_networks,
  'reviews': reviews.create_networks,
  'resnet50': resnet.create_networks,
}
