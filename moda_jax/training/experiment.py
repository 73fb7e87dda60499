"""A config made into data, a method and compiled functions."""

import logging
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import ml_collections
import optax
import tensorflow as tf

from moda_jax import config as config_lib
from moda_jax import objectives
from moda_jax.data import batches, randaugment
from moda_jax.data.classes import match_classes
from moda_jax.data.domains import Domains
from moda_jax.data.load import hold_out, load_for_each
from moda_jax.errors import UserError
from moda_jax.models.create import create_networks
from moda_jax.models.networks import Networks
from moda_jax.models.pretrained import Pretrained, put_into
from moda_jax.training import several_seeds
from moda_jax.training.evaluation import Evaluator, dense
from moda_jax.training.optimizers import create_optimizer
from moda_jax.training.step import (
  DEVICES,
  TrainState,
  as_float,
  compile_step,
  create_train_state,
)

_log = logging.getLogger(__name__)


class Experiment:
  """Everything a run needs but its folder.

  With `config.seeds` above 1 it is several runs side by side, see
  `moda_jax.training.several_seeds`; what is shown of data is then the first
  one's.

  Attributes:
    config: checked.
    devices: how many share a batch.
    domains: the data, of the first seed.
    origins: what serves each domain, and what weights training starts from.
    method: the objective.
    total_steps: the length of training.
    initial_state: the state before the first step.
    train_step: `(state, batch) -> (state, metrics)`, compiled; the state given
      is consumed.
    evaluator: of the target's test split.
  """

  def __init__(
    self,
    config: ml_collections.ConfigDict,
    data: Domains | None = None,
    devices: int | None = None,
  ):
    """Checks the config, loads what it names and initialises.

    Args:
      config: see `moda_jax.config.base_config`.
      data: examples in memory, instead of those that the config names.
      devices: how many to use; all of them unless told.
    """
    config_lib.check(config)
    randaugment.check_exclude(config.randaugment_exclude)
    method = _choose_method(config.method)
    self.config = config
    self.devices = _count_devices(config.batch_size, devices)
    configs = config_lib.split_seeds(config)
    domains = _load(configs, data, method)
    self.domains = domains[0]
    _check_labels(self.domains, config.method)
    epoch = batches.epoch_steps(self.domains, method, config.batch_size)
    self.total_steps = config.steps or config.epochs * epoch
    self.method, weights = self._create_method(method)
    self.origins = self.domains.describe()
    if weights is not None:
      self.origins['weights'] = weights.describe()
    self.batch_fn = batches.make_stacked_batch_fn(domains, method, configs)
    self._make_runs([single.seed for single in configs], domains, weights)

  @property
  def images_per_step(self) -> int:
    """Over all domains, views and seeds."""
    sources = len(self.config.sources) if self.method.reads_sources else 0
    groups = sources + len(self.method.views)
    return self.config.seeds * groups * self.config.batch_size

  def _create_method(
    self, method: type[objectives.Method]
  ) -> tuple[objectives.Method, Pretrained | None]:
    config = self.config
    axis_name = DEVICES if self.devices > 1 else None
    networks, weights = create_networks(
      config, self.domains.num_classes, axis_name
    )
    _check_inputs(self.domains, networks, config.network)
    made = method(
      networks, tuple(config.sources), config, axis_name, self.total_steps
    )
    return made, weights

  def _make_runs(
    self,
    seeds: Sequence[int],
    domains: Sequence[Domains],
    weights: Pretrained | None,
  ) -> None:
    """Makes the first state and the compiled functions, for all seeds."""
    rngs = [jax.random.key(seed) for seed in seeds]
    created = [self._create_state(rng, weights) for rng in rngs]
    tx = created[0][1]
    self.initial_state = self._place(
      several_seeds.stack_states([state for state, _ in created])
    )
    self.train_step = compile_step(
      several_seeds.make_step(self.method, tx, rngs),
      self.devices,
      donate_state=True,
    )
    self._predict = jax.jit(
      several_seeds.average_predictions(
        lambda params, state, x: self.method.predict(
          params, state, as_float(x)
        ),
        len(seeds),
      )
    )
    evaluator = Evaluator(
      self.method, self.domains, self.config.eval_batch_size, self.devices
    )
    by_seed = dict(zip(seeds, domains, strict=True))
    self.evaluator = several_seeds.make_evaluator(evaluator, by_seed)

  def _create_state(
    self, rng: jax.Array, weights: Pretrained | None
  ) -> tuple[TrainState, optax.GradientTransformation]:
    state, tx = create_train_state(
      self.method,
      lambda params: create_optimizer(self.config, params),
      rng,
      dense(self.domains.target.inputs[:1]),
    )
    if weights is None:
      return state, tx
    params, method_state = put_into(weights, state.params, state.method_state)
    return state.replace(params=params, method_state=method_state), tx

  def _place(self, state: TrainState) -> TrainState:
    """Where the step leaves it: else the second step compiles anew."""
    if self.devices == 1:
      return state
    return jax.device_put(
      state, batches.over_devices(self.devices, split=False)
    )

  def make_batches(self, start: int) -> Iterator[Any]:
    """Yields the batches of the steps from `start` on, on the devices."""
    made = batches.make_batches(self.batch_fn, start, self.total_steps)
    return batches.prefetch_to_device(
      made, self.devices, stacked=self.config.seeds > 1
    )

  def make_batch(self, step: int) -> batches.Batch:
    """Returns one batch as NumPy arrays, not split; the first seed's."""
    batch = self.batch_fn(tf.constant(step, tf.int64))
    if self.config.seeds > 1:
      batch = jax.tree.map(lambda x: x[0], batch)
    return jax.tree.map(lambda x: x.numpy(), batch)

  def predict(
    self, state: TrainState, inputs: Any, prepared: bool = False
  ) -> Any:
    """Returns what the method predicts for inputs `[B, …]`.

    Of several seeds it is the mean of their probabilities.

    Args:
      state: a state of training.
      inputs: images as bytes or in 0..1, or features.
      prepared: whether the state comes from `evaluator.prepare`, which a
        method may need before it predicts.
    """
    if not prepared:
      state = self.evaluator.prepare(state)
    return self._predict(state.params, state.method_state, inputs)


def _choose_method(name: str) -> type[objectives.Method]:
  if name not in objectives.METHODS:
    raise UserError(
      f"config.method = '{name}' is unknown; allowed are "
      f'{", ".join(objectives.METHODS)}.'
    )
  return objectives.METHODS[name]


def _load(
  configs: Sequence[ml_collections.ConfigDict],
  data: Domains | None,
  method: type[objectives.Method],
) -> list[Domains]:
  """The domains of each run."""
  loaded = [data] * len(configs) if data else load_for_each(configs)
  if method.reads_target_labels:
    loaded = [
      hold_out(domains, config.seed)
      for domains, config in zip(loaded, configs, strict=True)
    ]
  return [match_classes(domains) for domains in loaded]


def _check_inputs(domains: Domains, networks: Networks, name: str) -> None:
  are_images = domains.target.inputs.ndim == 4
  if are_images != networks.takes_images:
    kinds = {True: 'images', False: 'rows of features'}
    raise UserError(
      f"config.network = '{name}' takes {kinds[networks.takes_images]}; the "
      f"target '{domains.target.name}' has {kinds[are_images]}."
    )


def _check_labels(domains: Domains, method: str) -> None:
  """Of the target, for methods that train on them, which is warned of."""
  if not objectives.METHODS[method].reads_target_labels:
    return
  if domains.target.labels is None:
    raise UserError(
      f"The method is trained on the target's labels, and '"
      f"{domains.target.name}' has none."
    )
  _log.warning(
    '%s is trained on the labels of the target %s: an upper bound, not '
    'domain adaptation.',
    method,
    domains.target.name,
  )


def _count_devices(batch_size: int, devices: int | None) -> int:
  devices = devices or jax.local_device_count()
  if batch_size % devices:
    raise UserError(
      f'config.batch_size = {batch_size} is not divisible by the number of '
      f'devices, {devices}.'
    )
  return devices
