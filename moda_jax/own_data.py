"""One's own data: what its configs share, and a call from Python."""

import hashlib
import os
import re
from collections.abc import Callable, Mapping
from typing import Any

import ml_collections
import numpy as np

from moda_jax import config as config_lib
from moda_jax.data.domains import Domain, Domains
from moda_jax.errors import UserError


def own_data_config() -> ml_collections.ConfigDict:
  """Values for pictures of any kind, evaluated on the target's own examples.

  The digits network at 32 × 32 is what a CPU can train; the views are those
  of the paper's photographs.
  """
  config = config_lib.base_config()
  config.experiment = 'own data'
  config.network = 'digits'
  config.image_size = 32
  config.test = 'target'
  config.weak_flip = True
  config.epochs = 30
  config.learning_rate = 0.3
  # ResNet's own layers, if it is chosen, are pretrained.
  config.rate_multipliers = (('/stage[1-4]/|_stem/', 0.1), ('.*', 1.0))
  return config


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
    find_domains: from the path to each domain's entry in `config.datasets`.
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
  config.datasets.update(find_domains(path))
  rest = [pair for pair in pairs if pair not in targets]
  argument = ','.join([targets[0].removeprefix('target='), *rest])
  return config_lib.apply_argument(config, argument, config.datasets, where)


def adapt(
  data: Mapping[str, tuple[Any, Any]],
  target: str,
  workdir: str | os.PathLike,
  **values: Any,
) -> Any:
  """Trains on `{name: (images, labels)}`; see `moda_jax.data.in_memory`.

  Args:
    data: the domains. Labels are whole numbers or names, matched by name
      across domains; those of the target serve evaluation alone, and may be
      None.
    target: which of them is the target; the others are sources.
    workdir: the run's folder, as for the command line.
    **values: values of the config, such as `method='fm'` or `steps=1000`.

  Returns:
    The `moda_jax.training.loop.Outcome`.
    `outcome.experiment.predict(outcome.state, images)` gives class probabilities, in the order of
    `outcome.experiment.domains.target.classes`.
  """
  from moda_jax.data import features, in_memory, load
  from moda_jax.training import loop as train

  config = own_data_config()
  config.datasets.update(dict.fromkeys(data, 'memory'))
  config.target = target
  config.sources = tuple(name for name in data if name != target)
  unknown = sorted(set(values) - set(config))
  if unknown:
    raise UserError(
      f'{", ".join(unknown)}: no such value in the config; it has '
      f'{", ".join(sorted(config))}.'
    )
  try:
    config.update(values)
  except TypeError as error:
    raise UserError(f'{error}.') from error
  config_lib.choose_length(config, values)
  whole = in_memory.make_domains(data, target)
  config_lib.check(config)
  if config.test == 'split':
    raise UserError(
      "test='split': arrays have no test split; use 'target' or 'rest'."
    )
  sources = tuple(_sign(source) for source in whole.sources)
  domains = load.draw(Domains(sources, _sign(whole.target), None), config)
  return train.train(config, workdir, features.make_ready(domains, config))


def _sign(domain: Domain) -> Domain:
  """Names the arrays by their content: a run of others is not resumed."""
  digest = hashlib.sha256(np.ascontiguousarray(domain.inputs))
  if domain.labels is not None:
    digest.update(np.ascontiguousarray(domain.labels))
  return domain._replace(origin=f'memory {digest.hexdigest()[:12]}')
