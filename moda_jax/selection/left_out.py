"""What a search has found for a run's values by leaving out each source."""

import json
import math
import os
import pathlib
from typing import Any, NamedTuple

import ml_collections

from moda_jax import config as config_lib
from moda_jax.errors import UserError

LEFT_OUT = 'left_out'
_TOLERANCE = 1e-6  # relative: values may have been typed


class Trial(NamedTuple):
  """One draw of a search.

  Attributes:
    values: what was drawn, by short name.
    accuracy: the mean over the sources, each left out in turn.
  """

  values: dict[str, Any]
  accuracy: float


class Search(NamedTuple):
  """A finished search.

  Attributes:
    method: that its trials trained.
    target: the domain that they never read.
    trials: its draws.
  """

  method: str
  target: str
  trials: list[Trial]

  def score(self, config: ml_collections.ConfigDict) -> float | None:
    """Returns the accuracy at a run's values; None where none was drawn.

    Args:
      config: of the run.
    """
    method, target = config.objective.method, config.data.target
    if (method, target) != (self.method, self.target):
      return None
    found = [t.accuracy for t in self.trials if _has(config, t.values)]
    return max(found, default=None)


def read_search(path: str | os.PathLike) -> Search:
  """Reads the `values.json` that experiments.search writes."""
  try:
    found = json.loads(pathlib.Path(path).read_text())
    trials = [
      Trial(dict(trial['values']), float(trial['mean_accuracy']))
      for trial in found['trials']
    ]
    search = Search(found['method'], found['target_never_read'], trials)
  except (OSError, ValueError, KeyError, TypeError) as error:
    raise UserError(
      f"--search='{path}' is not the values.json of a search: "
      f'{type(error).__name__}: {error}.'
    ) from error
  if not any(trial.values for trial in trials):
    raise UserError(f"--search='{path}' has no trial that drew a value.")
  return search


def _has(config: ml_collections.ConfigDict, values: dict[str, Any]) -> bool:
  return bool(values) and all(
    _is_set(config, name, value) for name, value in values.items()
  )


def _is_set(config: ml_collections.ConfigDict, name: str, value: Any) -> bool:
  full = config_lib.full_name(config, name)
  if full is None:
    return False
  section, _, leaf = full.partition('.')
  found = config[section][leaf]
  if isinstance(found, float):
    return math.isclose(found, float(value), rel_tol=_TOLERANCE)
  return found == value
