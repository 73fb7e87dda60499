"""Config files: what they start from, their arguments, finding them by name."""

import json
import pathlib
import re
from collections.abc import Callable, Iterable

import ml_collections

import moda_jax
from moda_jax import config as config_lib
from moda_jax.data.options import AUTO, FIT
from moda_jax.errors import UserError
from moda_jax.training import options


def base_config() -> ml_collections.ConfigDict:
  """Returns every option with its default; see `options.base_config`."""
  return options.base_config()


def apply_argument(
  config: ml_collections.ConfigDict,
  argument: str,
  targets: Iterable[str],
  where: str,
) -> ml_collections.ConfigDict:
  """Sets target, sources and further values from `target[,key=value…]`.

  `values=FILE` stands for the values in a file, such as a search writes.

  Args:
    config: changed in place and returned.
    argument: what follows the colon in `--config=configs/digits.py:…`.
    targets: the experiment's domains; those that are not the target become
      the sources, in this order.
    where: the config's name in messages.
  """
  targets = tuple(targets)
  target, *pairs = argument.split(',')
  if target not in targets:
    raise UserError(
      f"{where}: unknown target '{target}'; allowed are {', '.join(targets)}."
    )
  config.data.target = target
  config.data.sources = tuple(name for name in targets if name != target)
  given = []
  for pair in pairs:
    expanded = _read_values(pair, where) if _names_file(pair) else [pair]
    given += [config_lib.set_argument(config, p, where) for p in expanded]
  config_lib.choose_length(config, given)
  options.refuse_unread(config, given)
  return config


def _names_file(pair: str) -> bool:
  return pair.startswith('values=')


def _read_values(pair: str, where: str) -> list[str]:
  """Returns what a file of values holds, as `key=value` pairs."""
  path = pathlib.Path(pair.partition('=')[2])
  try:
    values = json.loads(path.read_text())['values']
    pairs = [f'{name}={value}' for name, value in values.items()]
  except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
    raise UserError(
      f"{where}: '{pair}' must name a file with "
      f'{{"values": {{"mu_s": 0.2, …}}}}, as experiments.search writes it: '
      f'{type(error).__name__}: {error}.'
    ) from error
  return pairs


def apply_path_argument(
  config: ml_collections.ConfigDict,
  argument: str,
  find_domains: Callable[[str], dict[str, str]],
  where: str,
) -> ml_collections.ConfigDict:
  """Sets domains and values from `path,target=name[,key=value…]`.

  Args:
    config: changed in place and returned.
    argument: what follows the colon in `--config=configs/folder.py:…`.
    find_domains: from the path to what serves each domain.
    where: the config's name in messages.
  """
  # A comma may be part of the path where no key follows it.
  path, *pairs = re.split(r',(?=\w+=)', argument)
  targets = [p for p in pairs if p.startswith('target=')]
  if not path or len(targets) != 1:
    raise UserError(
      f"{where}: '{argument}' must be PATH,target=DOMAIN[,key=value…], with "
      'the target named once.'
    )
  config.data.datasets.update(find_domains(path))
  rest = [pair for pair in pairs if pair not in targets]
  argument = ','.join([targets[0].removeprefix('target='), *rest])
  return apply_argument(config, argument, config.data.datasets, where)


def own_data_config() -> ml_collections.ConfigDict:
  """Returns values for data of any kind, evaluated on the target itself.

  Network, its start, size of pictures and lengths are left open, see `fitting`;
  the views are those of the paper's photographs.
  """
  config = base_config()
  config.experiment = 'own data'
  config.network.name = config.network.init = AUTO
  config.data.image_size = FIT
  config.data.evaluate_on = 'target'
  config.views.weak_flip = True
  run = config.run
  run.steps = FIT
  run.log_every = run.eval_every = run.checkpoint_every = 0
  config.optimizer.learning_rate = 0.3
  # ResNet's own layers, if it is chosen, are pretrained.
  config.optimizer.rate_multipliers = (
    ('/stage[1-4]/|_stem/', 0.1),
    ('.*', 1.0),
  )
  return config


def config_folder() -> pathlib.Path:
  """Returns the folder of config files: the clone's, or the installed one."""
  package = pathlib.Path(moda_jax.__file__).parent
  installed = package / 'configs'
  return installed if installed.is_dir() else package.parent / 'configs'


def config_names() -> list[str]:
  """Returns the names of the config files that come with the package."""
  found = config_folder().glob('*.py')
  return sorted(path.stem for path in found if path.stem != '__init__')


def find_config(name: str) -> pathlib.Path:
  """Returns the config file for a name such as 'digits', or for a path."""
  path = pathlib.Path(name)
  if path.suffix == '.py':
    return path
  if name not in config_names():
    raise UserError(
      f"There is no config '{name}'; there are {', '.join(config_names())}, "
      'and files of your own by their path.'
    )
  return config_folder() / f'{name}.py'


def get_config(name: str) -> ml_collections.ConfigDict:
  """Returns a config by name and argument, as `--config=` takes them.

  >>> get_config('digits:mnistm,method=moda').objective.method
  'moda'
  """
  if not isinstance(name, str):
    raise UserError(
      f"{name!r} is not a config's name, such as 'digits:mnistm'."
    )
  file, colon, argument = name.partition(':')
  path = find_config(file)
  if not path.is_file():
    raise UserError(f"'{path}' is not there, or not a config file.")
  module = config_lib.import_beside(path, path.stem)
  return module.get_config(argument) if colon else module.get_config()
