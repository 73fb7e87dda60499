"""The paper's accuracies (%), mean and standard deviation of five runs.

From Pernes & Cardoso, "Tackling unsupervised multi-source domain adaptation
with optimism and consistency"; those of MADA are quoted there from its paper.
"""

_DIGITS = ('mnist', 'mnistm', 'svhn')
_OFFICE31 = ('amazon', 'dslr', 'webcam')
_REVIEWS = ('books', 'dvd', 'electronics', 'kitchen')

# By experiment: its targets, and a row for every method.
_TABLES: dict[
  str, tuple[tuple[str, ...], dict[str, tuple[tuple[float, float], ...]]]
] = {
  'digits': (
    _DIGITS,
    {
      'dann_ss': ((97.9, 0.4), (73.2, 1.6), (72.8, 3.3)),
      'dann_ms': ((97.9, 1.6), (67.5, 1.4), (71.5, 1.6)),
      'mdan': ((98.3, 0.2), (69.1, 1.2), (69.5, 2.8)),
      'moe': ((98.6, 0.2), (69.9, 1.1), (81.8, 0.8)),
      'moda': ((98.4, 0.2), (77.4, 1.6), (71.7, 1.5)),
      'fm': ((99.2, 0.1), (91.1, 0.4), (90.0, 0.8)),
      'moda_fm': ((98.8, 0.1), (95.4, 0.4), (89.4, 1.4)),
      'supervised': ((98.9, 0.1), (96.2, 0.1), (90.3, 0.5)),
    },
  ),
  'office31': (
    _OFFICE31,
    {
      'dann_ss': ((60.5, 1.4), (100.0, 0.0), (98.0, 0.3)),
      'dann_ms': ((61.2, 1.3), (99.9, 0.2), (98.8, 0.3)),
      'mada_ss': ((70.3, 0.3), (99.6, 0.1), (97.4, 0.1)),
      'mdan': ((65.2, 0.4), (99.3, 0.2), (97.8, 0.5)),
      'moda': ((65.5, 0.5), (99.9, 0.2), (99.0, 0.3)),
      'fm': ((70.3, 0.6), (99.7, 0.2), (99.2, 0.4)),
      'moda_fm': ((70.7, 0.9), (100.0, 0.0), (99.1, 0.1)),
      'supervised': ((88.1, 1.6), (99.3, 1.1), (99.5, 0.7)),
    },
  ),
  'reviews': (
    _REVIEWS,
    {
      'dann_ss': ((77.5, 1.0), (78.9, 0.9), (84.2, 0.2), (85.8, 0.4)),
      'dann_ms': ((78.9, 0.2), (80.8, 1.0), (84.7, 0.6), (87.0, 0.4)),
      'mdan': ((79.1, 0.3), (81.3, 0.8), (84.6, 0.3), (85.6, 1.6)),
      'moe': ((80.3, 0.3), (81.9, 0.6), (85.2, 0.6), (87.4, 0.5)),
      'moda': ((79.0, 0.2), (80.7, 1.2), (84.7, 0.3), (86.8, 0.6)),
      'fm': ((78.8, 2.0), (81.0, 1.5), (85.6, 0.9), (87.6, 0.7)),
      'moda_fm': ((80.9, 1.1), (82.0, 1.0), (85.3, 0.4), (88.4, 0.3)),
      'supervised': ((83.6, 0.4), (83.6, 0.6), (85.4, 0.4), (87.8, 0.2)),
    },
  ),
}


def published(
  experiment: str, method: str, target: str
) -> tuple[float, float] | None:
  """Returns the paper's mean and standard deviation; None if it has none."""
  targets, methods = _TABLES.get(experiment, ((), {}))
  if target not in targets or method not in methods:
    return None
  return methods[method][targets.index(target)]


def published_methods(experiment: str) -> list[str]:
  """Returns the methods that the paper compares in an experiment."""
  return list(_TABLES[experiment][1])


# Jensen-Shannon distances of labels, from the appendix.
_DISTANCES = {
  ('mnist', 'mnistm'): 2.73e-4,
  ('mnist', 'svhn'): 0.117,
  ('mnist', 'synth'): 0.0183,
  ('mnistm', 'svhn'): 0.117,
  ('mnistm', 'synth'): 0.0184,
  ('svhn', 'synth'): 0.126,
  ('amazon', 'dslr'): 0.133,
  ('amazon', 'webcam'): 0.0976,
  ('dslr', 'webcam'): 0.145,
  ('books', 'dvd'): 1.67e-3,
  ('books', 'electronics'): 1.93e-3,
  ('books', 'kitchen'): 5.09e-3,
  ('dvd', 'electronics'): 2.53e-4,
  ('dvd', 'kitchen'): 3.42e-3,
  ('electronics', 'kitchen'): 3.17e-3,
}


def published_distance(a: str, b: str) -> float | None:
  """Returns the paper's distance between the labels of two domains."""
  return _DISTANCES.get((a, b), _DISTANCES.get((b, a)))
