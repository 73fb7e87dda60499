"""What a search has found for a run's values by leaving out each source."""

import json
import math
import os
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import ml_collections

from moda_jax import config as config_lib
from moda_jax.data.options import AUTO, FIT
from moda_jax.errors import UserError
from moda_jax.training.meaning import describe_meaning

_TOLERANCE = 1e-6  # relative: values may have been typed
# A search may be shorter than a run, and has a seed of its own.
_OTHERWISE = ('run.seed', 'run.steps', 'run.epochs', 'run.selection')
_MISSING = object()


class Trial(NamedTuple):
  """One draw of a search.

  Attributes:
    values: what was drawn, by short name.
    accuracy: the mean over the sources, each left out in turn.
  """

  values: dict[str, int | float | str]
  accuracy: float


class Search(NamedTuple):
  """A finished search.

  Attributes:
    meaning: what its config computes, see `describe_meaning`.
    trials: its draws.
  """

  meaning: dict[str, Any]
  trials: list[Trial]

  def find_accuracy(
    self, config: ml_collections.ConfigDict
  ) -> tuple[float | None, str]:
    """Returns the accuracy at a run's values, or why there is none.

    A run counts as one of the search if it differs from the search's config in
    nothing but drawn values, length and seed.

    Args:
      config: of the run.
    """
    drawn = {name for trial in self.trials for name in trial.values}
    full = {config_lib.full_name(config, name) for name in drawn}
    ours = describe_meaning(config)
    differing = [
      name
      for name in sorted({**self.meaning, **ours})
      if name not in full
      and name not in _OTHERWISE
      and self.meaning.get(name) not in (AUTO, FIT)  # the same data decides
      and self.meaning.get(name, _MISSING) != ours.get(name, _MISSING)
    ]
    if differing:
      return None, f'{", ".join(differing)} differ from the search'
    found = [t.accuracy for t in self.trials if _has(config, t.values)]
    if not found:
      return None, f'no trial has its {", ".join(sorted(drawn))}'
    return max(found), ''


def read_search(path: str | os.PathLike) -> Search:
  """Reads the `values.json` that experiments.search writes."""
  where = f"--search='{path}'"
  try:
    found = json.loads(pathlib.Path(path).read_text())
  except (OSError, ValueError) as error:
    raise UserError(f'{where} cannot be read: {error}.') from error
  parts = found if isinstance(found, Mapping) else {}
  trials, meaning = parts.get('trials'), parts.get('meaning')
  if not isinstance(trials, list) or not isinstance(meaning, Mapping):
    raise UserError(
      f"{where} must be the values.json of experiments.search, with 'trials' "
      "and 'meaning', which versions before 0.2 did not write."
    )
  read = [
    _read_trial(trial, f'{where}: trial {i}') for i, trial in enumerate(trials)
  ]
  if not any(trial.values for trial in read):
    raise UserError(f'{where} has no trial that drew a value.')
  return Search(dict(meaning), read)


def _read_trial(trial: Any, where: str) -> Trial:
  parts = trial if isinstance(trial, Mapping) else {}
  values, accuracy = parts.get('values'), parts.get('mean_accuracy')
  if not isinstance(values, Mapping) or any(
    not isinstance(value, int | float | str) for value in values.values()
  ):
    raise UserError(f"{where} must have 'values', numbers or words by name.")
  if not isinstance(accuracy, int | float) or not 0 <= accuracy <= 1:
    raise UserError(
      f"{where}: 'mean_accuracy' = {accuracy!r} must be within 0..1."
    )
  return Trial(dict(values), float(accuracy))


def _has(
  config: ml_collections.ConfigDict, values: Mapping[str, int | float | str]
) -> bool:
  return bool(values) and all(
    _is_set(config, name, value) for name, value in values.items()
  )


def _is_set(
  config: ml_collections.ConfigDict, name: str, value: int | float | str
) -> bool:
  full = config_lib.full_name(config, name)
  if full is None:
    return False
  section, _, leaf = full.partition('.')
  found = config[section][leaf]
  if isinstance(found, float) and not isinstance(value, str):
    return math.isclose(found, value, rel_tol=_TOLERANCE)
  return bool(found == value)
