"""One trial: every source is the target in turn, and the target is not read."""

import pathlib
from collections.abc import Callable, Mapping

import ml_collections

from moda_jax import config as config_lib
from moda_jax.errors import UserError
from moda_jax.training import loop as train

Report = Callable[[str, float], None]


def held_out_config(
  config: ml_collections.ConfigDict, held_out: str, values: Mapping[str, float]
) -> ml_collections.ConfigDict:
  """Returns the config with a source in the target's place, at other values.

  What serves the real target is taken out of the config, so that nothing can
  read it.
  """
  if len(config.data.sources) < 2:
    raise UserError(
      f'config.data.sources = {config.data.sources}: leaving one out leaves '
      'none to learn from.'
    )
  config = config.copy_and_resolve_references()
  with config.unlocked():
    del config.data.datasets[config.data.target]
  config.data.sources = tuple(s for s in config.data.sources if s != held_out)
  config.data.target = held_out
  for name, value in values.items():
    full = config_lib.full_name(config, name)
    if full is None:
      raise UserError(f'{name}: not a value of the config, or several.')
    section, leaf = full.split('.')
    config[section][leaf] = value
  config_lib.choose_length(config, values)
  return config


def run_trial(
  config: ml_collections.ConfigDict,
  values: Mapping[str, float],
  folder: pathlib.Path,
  report: Report | None = None,
) -> dict[str, float]:
  """Trains with each source held out; returns the accuracy on each.

  Args:
    config: the experiment.
    values: what differs from it, by short name.
    folder: gets a folder for each source; finished ones are not trained again.
    report: called with each source and the accuracy on it.
  """
  accuracies = {}
  for source in config.data.sources:
    held_out = held_out_config(config, source, values)
    accuracy = train.train(held_out, folder / source).accuracy
    if accuracy is None:
      raise UserError(f"The source '{source}' has no labels to evaluate on.")
    accuracies[source] = accuracy
    if report is not None:
      report(source, accuracy)
  return accuracies
