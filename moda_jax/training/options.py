"""Options of a run, and a config's sections checked by what they choose."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import ml_collections

from moda_jax.config import SECTIONS, defaults, option, read_section
from moda_jax.data.options import FIT, DataOptions, ViewOptions
from moda_jax.errors import UserError
from moda_jax.models import NETWORKS
from moda_jax.models.networks import NetworkOptions
from moda_jax.objectives import METHODS, PARTS, find_method, name_method
from moda_jax.selection.criteria import CRITERIA
from moda_jax.training.optimizers import OPTIMIZERS, OptimizerOptions
from moda_jax.training.unread import why_unread


@dataclasses.dataclass(frozen=True)
class RunOptions:
  """How long a run is and what it leaves behind.

  Attributes:
    seed: of every random draw.
    seeds: how many runs train side by side, from `seed` on.
    epochs: how many times the largest domain is gone through.
    steps: the length in steps, instead of epochs; −1 fits it to the data.
    log_every: steps between two lines of metrics; 0 fits this and the next two
      to the length.
    eval_every: steps between two evaluations.
    checkpoint_every: steps between two checkpoints.
    checkpoint_minutes: the longest time between two, as far as lines of
      metrics come as often; 0 saves by steps alone.
    keep_checkpoints: how many of the last ones are kept.
    selection: the criterion by whose best evaluation a checkpoint is kept
      besides, which the run is then evaluated, predicted and exported with,
      see `moda_jax.selection.criteria`; '' takes the last step.
    on_nonfinite: what a loss or gradients that are not finite mean: 'stop'
      ends the run, 'skip' leaves the step out and counts it.
    max_skipped: how many steps may be left out; more end the run.
    eval_batch_size: examples at a time when evaluating and predicting, at
      most: of images as many as 512 of 32 × 32 have pixels.
    devices: how many devices share a batch in training, over all processes;
      0 takes as many as divide it.
    compilation_cache: the folder that compiled programs are kept in for the
      next start: 'auto' is one in the user's cache folder, 'off' keeps none.
  """

  seed: int = option(0, least=0)
  seeds: int = option(1, least=1)
  epochs: int = option(0, least=0)
  steps: int = option(0, least=FIT)
  log_every: int = option(100, least=0)
  eval_every: int = option(1000, least=0)
  checkpoint_every: int = option(1000, least=0)
  checkpoint_minutes: float = option(10.0, least=0)
  keep_checkpoints: int = option(2, least=1)
  selection: str = option('', choices=('', *CRITERIA))
  on_nonfinite: str = option('stop', choices=('stop', 'skip'))
  max_skipped: int = option(10, least=0)
  eval_batch_size: int = option(500, least=1)
  devices: int = option(0, least=0)
  compilation_cache: str = option('auto')

  def __post_init__(self):
    if self.seed + self.seeds > 2**63:
      raise UserError(
        f'config.run.seed = {self.seed} and config.run.seeds = {self.seeds}: '
        'the last seed must be below 2**63.'
      )
    if (self.epochs > 0) == (self.steps != 0):
      raise UserError(
        f'config.run.epochs = {self.epochs} and config.run.steps = '
        f'{self.steps}: exactly one of them must be above 0, or steps −1, '
        'which fits the length to the data.'
      )


class Settings(NamedTuple):
  """A config's sections, checked; what they choose reads nothing else."""

  data: DataOptions
  views: ViewOptions
  network: NetworkOptions
  objective: Any
  optimizer: OptimizerOptions
  run: RunOptions


def base_config() -> ml_collections.ConfigDict:
  """Returns every option of every choice with its default, in sections.

  An experiment's config file overrides some; `search` gives what a search draws
  from: the two ends of a range for a float, log-uniformly, and all choices for
  a whole number.
  """
  methods = [method.Options for method in METHODS.values()]
  parts = [part.Options for kind in PARTS.values() for part in kind.values()]
  return ml_collections.ConfigDict(
    {
      'experiment': '',
      'data': defaults(DataOptions) | {'datasets': {}},
      'views': defaults(ViewOptions),
      'network': {'name': ''} | defaults(*NETWORKS.values()),
      'objective': {'method': 'moda_fm'}
      | dict.fromkeys(PARTS, '')  # as in the method
      | defaults(*methods, *parts),
      'optimizer': {'name': 'adadelta'} | defaults(*OPTIMIZERS.values()),
      'run': defaults(RunOptions),
      'search': {},
    }
  )


def check(config: ml_collections.ConfigDict) -> Settings:
  """Returns the sections, checked; raises `UserError` for a wrong value."""
  _check_names(config)
  kinds = _find_kinds(config)
  settings = Settings(
    **{name: read_section(kinds[name], config[name], name) for name in SECTIONS}
  )
  _check_sharpness(settings, config)
  _check_selection(settings)
  return settings


def _check_sharpness(
  settings: Settings, config: ml_collections.ConfigDict
) -> None:
  """Refuses SDAT for a method that does not tell its task loss."""
  rho = settings.optimizer.sam_rho
  if rho and find_method(config.objective).task_losses is None:
    raise UserError(
      f'config.optimizer.sam_rho = {rho}: '
      f"'{name_method(config.objective)}' does not tell a task loss from the "
      'rest of its loss; methods that are composed of parts do.'
    )


def _check_selection(settings: Settings) -> None:
  """Refuses a criterion that reads examples which nothing holds out."""
  name = settings.run.selection
  free = [n for n, c in CRITERIA.items() if not c.needs_held]
  if name and name not in free and not settings.data.holdout:
    raise UserError(
      f"config.run.selection = '{name}' needs source examples that are held "
      'out of training, and config.data.holdout = 0.0: set holdout=0.1, say, '
      f'or one of {", ".join(free)}.'
    )


def _check_names(config: Any) -> None:
  """Refuses what is not a config, and values that no part reads."""
  if not isinstance(config, ml_collections.ConfigDict) or any(
    section not in config for section in SECTIONS
  ):
    raise UserError(
      f'a config must be a ConfigDict with the sections {", ".join(SECTIONS)}, '
      f"such as moda_jax.get_config('mini:mnistm'); this is of type "
      f'{type(config).__name__}.'
    )
  known = base_config()
  for section in SECTIONS:
    for name in config[section]:
      if name not in known[section]:
        raise UserError(
          f'config.{section}.{name}: there is no such value; there are '
          f'{", ".join(sorted(known[section]))}.'
        )


def prune(config: ml_collections.ConfigDict) -> ml_collections.ConfigDict:
  """Returns a copy with nothing in it that its choices do not read."""
  pruned = config.copy_and_resolve_references()
  with pruned.unlocked():
    for section, kind in _find_kinds(config).items():
      read = {field.name for field in dataclasses.fields(kind)}
      chosen = _chosen(pruned[section], section)
      for name in list(pruned[section]):
        if name not in read and name not in chosen:
          del pruned[section][name]
  return pruned


def refuse_unread(
  config: ml_collections.ConfigDict, given: Iterable[str]
) -> None:
  """Refuses values that a user has set and that the chosen parts do not read.

  Args:
    config: with the values set.
    given: the full names of what the user has set, such as 'objective.mu_s'.
  """
  kinds = _find_kinds(config)
  for full in given:
    section, _, name = full.partition('.')
    if (
      full == 'optimizer.beta_rate'
      and not find_method(config.objective).has_beta()
    ):
      raise UserError(
        f'config.{full} = {config[section][name]!r}: '
        f"'{name_method(config.objective)}' does not read it; it has no source "
        'weights β.'
      )
    reason = why_unread(config, full)
    if reason:
      raise UserError(
        f'config.{full} = {config[section][name]!r}: training does not read '
        f'it, since {reason}.'
      )
    if section not in kinds or name in _CHOICES.get(section, ()):
      continue
    read = [field.name for field in dataclasses.fields(kinds[section])]
    if name.partition('.')[0] not in read:
      chosen = _name_choice(config, section)
      raise UserError(
        f"config.{full} = {config[section][name]!r}: '{chosen}' does not read "
        f'it; it reads {", ".join(sorted(read)) or "no values"}.'
      )


# What chooses among several kinds of a section.
_CHOICES = {
  'network': ('name',),
  'objective': ('method', *PARTS),
  'optimizer': ('name',),
}


def _chosen(values: Mapping[str, Any], section: str) -> list[str]:
  """Returns which of the section's choices are made: '' makes none."""
  return [name for name in _CHOICES.get(section, ()) if values.get(name)]


def _name_choice(config: Mapping[str, Any], section: str) -> str:
  if section == 'objective':
    return name_method(config[section])
  return config[section].get('name', section)


def _find_kinds(config: Mapping[str, Any]) -> dict[str, type]:
  """Returns each section's dataclass, for what the config chooses."""
  return {
    'data': DataOptions,
    'views': ViewOptions,
    'network': _choose(config, 'network', NETWORKS),
    'objective': find_method(config['objective']).Options,
    'optimizer': _choose(config, 'optimizer', OPTIMIZERS),
    'run': RunOptions,
  }


def _choose(
  config: Mapping[str, Any], section: str, known: Mapping[str, type]
) -> type:
  name = config[section]['name']
  if name not in known:
    raise UserError(
      f"config.{section}.name = '{name}' is unknown; allowed are "
      f'{", ".join(known)}.'
    )
  return known[name]


def split_seeds(
  config: ml_collections.ConfigDict,
) -> list[ml_collections.ConfigDict]:
  """Returns the configs of the single runs that `run.seeds` means."""
  configs = []
  for seed in range(config.run.seed, config.run.seed + config.run.seeds):
    single = config.copy_and_resolve_references()
    single.run.seed, single.run.seeds = seed, 1
    configs.append(single)
  return configs
