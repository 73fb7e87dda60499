"""What is to be trained: a config's text, and the folder of its run."""

import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import ml_collections

from experiments.runs.scales import Setting
from moda_jax import config as config_lib
from moda_jax.data.options import AUTO
from moda_jax.errors import UserError
from moda_jax.objectives import METHODS, PARTS
from moda_jax.training import options
from moda_jax.training.config_files import get_config
from moda_jax.training.unread import why_unread

_CHOOSING = (*PARTS, 'network', 'optimizer')
_VIEWS = ('strong', 'weak_augment')


class Request(NamedTuple):
  """One run.

  Attributes:
    setting: the experiment at its scale.
    target: the target domain.
    method: a name in `METHODS`.
    seed: of every random draw.
    argument: the config's name and argument, as `--config=` takes them.
    folder: where the run is or will be.
    sources: the domains to learn from; all but the target where empty.
  """

  setting: Setting
  target: str
  method: str
  seed: int
  argument: str
  folder: pathlib.Path
  sources: tuple[str, ...] = ()

  @property
  def name(self) -> str:
    """What the run is called in messages."""
    return f'{self.target} {self.method} seed {self.seed}'

  @property
  def log(self) -> pathlib.Path:
    """The file that gets what the run writes to its terminal."""
    return self.folder.with_name(f'{self.folder.name}.log')

  def flags(self) -> list[str]:
    """Returns the flags of `python -m moda_jax.main` that train it."""
    datasets = [
      f'--config.data.datasets.{name}={origin}'
      for name, origin in self.setting.datasets.items()
    ]
    sources = [f'--config.data.sources={self.sources}'] * bool(self.sources)
    workdir = f'--workdir={self.folder}'
    return [f'--config={self.argument}', *datasets, *sources, workdir]

  def config(self) -> ml_collections.ConfigDict:
    """Returns the config that these flags describe."""
    config = get_config(self.argument)
    config.data.datasets.update(self.setting.datasets)
    if self.sources:
      config.data.sources = self.sources
    return config


def make_requests(
  setting: Setting,
  targets: Sequence[str],
  methods: Sequence[str],
  seeds: Iterable[int],
  workdir: pathlib.Path,
  values: Sequence[str] = (),
  sources: Sequence[str] = (),
) -> list[Request]:
  """Returns the runs of all targets, methods and seeds, seed by seed.

  Args:
    setting: the experiment at its scale.
    targets: domains that are the target in turn.
    methods: names in `METHODS`.
    seeds: of the runs.
    workdir: gets `<experiment>_<scale>/<target>/<method>/<seed>`.
    values: further `key=value` pairs, each for the methods that read it;
      `{target}` and `{method}` in them are replaced.
    sources: the domains to learn from; all but the target where empty.
  """
  domains = get_config(setting.config).data.datasets
  _check(methods, METHODS, '--methods')
  _check(targets, domains, '--targets')
  _refuse_open(values)
  if sources:
    _check(sources, domains, '--sources')
    _check_apart(sources, targets)
  arguments = {
    (target, method): _make_argument(setting, target, method, values)
    for target in targets
    for method in methods
  }
  _refuse_unread(values, arguments.values())
  named = [f'sources={"+".join(sources)}'] * bool(sources)
  extra = '_'.join(pair.replace('/', '-') for pair in [*values, *named])
  return [
    Request(
      setting,
      target,
      method,
      seed,
      f'{argument},seed={seed}',
      workdir / setting.name / extra / target / method / str(seed),
      tuple(sources),
    )
    for seed in seeds
    for (target, method), argument in arguments.items()
  ]


def _check(given: Sequence[str], known: Iterable[str], flag: str) -> None:
  unknown = sorted(set(given) - set(known))
  if unknown or not given:
    named = ', '.join(unknown) or 'nothing'
    raise UserError(f"{flag} names '{named}'; known are {', '.join(known)}.")


def _check_apart(sources: Sequence[str], targets: Sequence[str]) -> None:
  both = sorted(set(sources) & set(targets))
  if both:
    raise UserError(
      f'--sources names {", ".join(both)}, which --targets has too; what is '
      'the target cannot be a source.'
    )


def _make_argument(
  setting: Setting, target: str, method: str, values: Sequence[str]
) -> str:
  """Returns config name and argument, without what the method does not read."""
  pairs = [f'{name}={value}' for name, value in setting.values.items()]
  # What chooses a network, a part or a view comes before what only that reads.
  chosen = [pair for pair in values if pair.partition('=')[0] in _CHOOSING]
  first = f'{setting.config}:{target},method={method}'
  config = get_config(','.join([first, *pairs, *chosen]))
  for pair in values:
    key = pair.partition('=')[0]
    if key in _VIEWS and not why_unread(config, f'views.{key}'):
      chosen.append(pair)
  base = ','.join([first, *pairs, *chosen])
  config = get_config(base)
  read = options.prune(config)
  kept: list[str] = []
  for pair in (pair for pair in values if pair not in chosen):
    pair = pair.replace('{target}', target).replace('{method}', method)
    key = pair.partition('=')[0]
    if key != 'values' and config_lib.full_name(config, key) is None:
      raise UserError(f"'{pair}': there is no value '{key}' in the config.")
    full = config_lib.full_name(config, key)
    if key == 'values' or (_has(read, full) and not why_unread(config, full)):
      kept.append(pair)
  return ','.join([base, *kept])


def _refuse_open(values: Iterable[str]) -> None:
  """Refuses what the data decides: a run records what that was."""
  for pair in values:
    if pair in (f'init={AUTO}', f'network={AUTO}'):
      raise UserError(f"'{pair}': a study names what it compares.")


def _has(config: Mapping[str, Mapping], name: str | None) -> bool:
  section, _, leaf = (name or '').partition('.')
  return leaf in config[section]


def _refuse_unread(values: Sequence[str], arguments: Iterable[str]) -> None:
  """Refuses a value that none of the methods reads."""
  texts = list(arguments)
  for pair in values:
    key = f',{pair.partition("=")[0]}='
    if not any(key in text for text in texts):
      raise UserError(f"'{pair}': none of the methods reads it.")
