"""How labels are distributed, and how far domains differ in that."""

import itertools

import numpy as np
from scipy.spatial import distance

from moda_jax.data.domains import Domain


def label_shares(domain: Domain) -> np.ndarray:
  """Returns the share of each class among the domain's examples, `[C]`."""
  counts = np.bincount(domain.known_labels, minlength=len(domain.classes))
  return counts / counts.sum()


def label_distances(domains: list[Domain]) -> dict[tuple[str, str], float]:
  """Returns the Jensen-Shannon distance of labels for each pair of domains.

  It is the square root of the divergence, in natural logarithms: 0 where the
  shares are the same, √ln 2 where no class is shared.
  """
  return {
    (a.name, b.name): float(
      distance.jensenshannon(label_shares(a), label_shares(b))
    )
    for a, b in itertools.combinations(domains, 2)
  }
