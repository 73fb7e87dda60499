"""A config made into data, a model and compiled functions."""

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import ml_collections
import tensorflow as tf

from moda_jax.data import batches, labelled
from moda_jax.data.classes import match_classes
from moda_jax.data.domains import Domains, some_rows
from moda_jax.data.load import hold_out, load_for_each, open_domains
from moda_jax.data.memory import hold_once
from moda_jax.errors import UserError
from moda_jax.files.caches import open_cache
from moda_jax.models.backbone import Backbone
from moda_jax.models.features import FeaturesOptions
from moda_jax.objectives import find_method, name_method
from moda_jax.training import devices as devices_lib
from moda_jax.training import options, several_seeds
from moda_jax.training.embedding import Embedding, embed_domains
from moda_jax.training.evaluation import Evaluator
from moda_jax.training.fitting import fit_length, fit_network
from moda_jax.training.learned_views import Learning
from moda_jax.training.model import Inputs, Model
from moda_jax.training.train_step import StepOptions, TrainState

_log = logging.getLogger(__name__)


class Experiment:
  """Everything a run needs but its folder.

  With `run.seeds` above 1 it is several runs side by side, see
  `moda_jax.training.several_seeds`; what is shown of data is then the first
  one's.

  Attributes:
    config: checked, with nothing left open and nothing that is not read.
    model: the method and its predictions.
    devices: how many share a batch.
    domains: the data, of the first seed.
    backbone: the fixed network whose features are trained on, if there is one.
    origins: what serves each domain, and what weights training starts from.
    epoch_steps: how many steps go through the largest domain once.
    total_steps: the length of training.
    initial_state: the state before the first step, not yet replicated.
    train_step: `(state, batch) -> (state, metrics)`, compiled; the state given
      is consumed.
    learning: of magnitudes of strong views; None where none are learned.
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
      config: see `moda_jax.training.options.base_config`.
      data: whole domains in memory, instead of those that the config names.
      devices: how many to use; all of them by default, which do for evaluating
        and predicting whatever the batch size.
    """
    devices_lib.check_devices()
    devices_lib.hide_from_tensorflow()
    config = labelled.name_source(config)
    options.check(config)
    whole = open_domains(config) if data is None else data
    config = fit_network(config, whole)
    whole = labelled.add_source(whole, config.data)
    settings = options.check(config)
    self.config = config = options.prune(config)
    spec = find_method(config.objective).batch_spec
    self.devices = devices or devices_lib.count_devices()
    configs = options.split_seeds(config)
    self.backbone = None
    if isinstance(settings.network, FeaturesOptions):
      self.backbone = settings.network.load_backbone()
      whole = embed_domains(whole, make_embedding(settings, self.backbone))
    domains = _load(configs, whole, spec.target_labels)
    self.domains = domains[0]
    _warn_of_target_labels(self.domains, config, spec.target_labels)
    epoch = batches.epoch_steps(self.domains, spec, config.data.batch_size)
    self.epoch_steps = epoch
    self.total_steps = fit_length(config, epoch)
    self.model = self._create_model()
    self.origins = self.domains.describe()
    if self.backbone is not None:
      self.origins['weights'] = self.backbone.description
    weights = self.model.method.networks.weights
    if weights is not None:
      self.origins['weights'] = weights.describe()
    self.batch_fn = batches.make_stacked_batch_fn(domains, spec, configs)
    self._compile(domains)

  @property
  def method(self) -> Any:
    """The model's method."""
    return self.model.method

  @property
  def depends_on_length(self) -> str:
    """What would have gone otherwise in a longer run; '' if nothing."""
    schedule = self.model.settings.optimizer.schedule
    if schedule != 'constant':
      return f'the schedule {schedule!r}'
    if self.method.depends_on_length:
      return f'the method {name_method(self.config.objective)!r}'
    return ''

  @property
  def images_per_step(self) -> int:
    """The number of inputs over all domains, views and seeds."""
    spec = self.method.batch_spec
    sources = len(self.config.data.sources) if spec.sources else 0
    sources *= 1 + spec.source_strong
    groups = sources + len(spec.target_views)
    return self.config.run.seeds * groups * self.config.data.batch_size

  def _create_model(self) -> Model:
    domains = self.domains
    inputs = Inputs(
      tuple(domains.target.inputs.shape[1:]),
      domains.sources[0].classes,
      padded=any(domain.padded for domain in domains.sources),
    )
    if self.backbone is not None:
      inputs = inputs._replace(
        variant=self.backbone.variant, picture_size=self.config.data.image_size
      )
    model = Model(self.config, inputs, self.total_steps, self.devices)
    if inputs.are_images != model.method.networks.takes_images:
      kinds = {True: 'images', False: 'rows of features'}
      raise UserError(
        f"config.network.name = '{self.config.network.name}' takes "
        f'{kinds[not inputs.are_images]}; the target '
        f"'{domains.target.name}' has {kinds[inputs.are_images]}."
      )
    return model

  def _compile(self, domains: Sequence[Domains]) -> None:
    """Makes the first state and the compiled functions, for all seeds."""
    seeds = self.model.seeds
    examples: Sequence[Any] = ()
    if not self.method.networks.takes_images:
      examples = [some_rows(own) for own in domains]
    self.initial_state, tx = self.model.create_state(examples)
    settings = self.model.settings
    self.learning = None
    if self.model.learns_views:
      self.learning = Learning(settings.views, self.epoch_steps)
    step_options = StepOptions(
      ema_decay=settings.optimizer.ema_decay,
      skip_nonfinite=settings.run.on_nonfinite == 'skip',
      sam_rho=settings.optimizer.sam_rho,
      learning=self.learning,
    )
    rngs = [jax.random.key(seed) for seed in seeds]
    self.train_step = devices_lib.compile_step(
      several_seeds.make_step(self.method, tx, rngs, step_options),
      self.devices,
      donate_state=True,
    )
    evaluator = Evaluator(
      self.method, self.domains, self.model.eval_batch_size, self.devices
    )
    by_seed = dict(zip(seeds, domains, strict=True))
    self.evaluator = several_seeds.make_evaluator(evaluator, by_seed)

  def feed(
    self, start: int, read_state: Callable[[], TrainState]
  ) -> Iterator[Any]:
    """Yields the batches of the steps from `start` on, on the devices.

    Args:
      start: the first step.
      read_state: returns the state after the steps whose batches were yielded.
    """
    if self.learning is None:
      return self.make_batches(start)
    return self.learning.by_epoch(
      self.make_batches, start, self.total_steps, read_state
    )

  def make_batches(
    self, start: int, stop: int | None = None, probabilities: Any = None
  ) -> Iterator[Any]:
    """Yields the batches of steps `start` to `stop` − 1, on the devices.

    Args:
      start: the first step.
      stop: the one after the last; that of training by default.
      probabilities: of magnitudes, where these are learned; uniform by default.
    """
    part = devices_lib.own_part(self.config.data.batch_size)
    stop = self.total_steps if stop is None else stop
    made = batches.make_batches(self.batch_fn, start, stop, part, probabilities)
    return devices_lib.prefetch_to_device(
      made, self.devices, stacked=self.config.run.seeds > 1
    )

  def make_batch(self, step: int) -> batches.Batch:
    """Returns one batch as NumPy arrays, not split; the first seed's."""
    batch = self.batch_fn(tf.constant(step, tf.int64))
    if self.config.run.seeds > 1:
      batch = jax.tree.map(lambda x: x[0], batch)
    return jax.tree.map(lambda x: x.numpy(), batch)

  def predict(self, state: TrainState, inputs: Any) -> Any:
    """Returns class probabilities `[B, C]` for prepared inputs `[B, …]`."""
    return self.model.predict(state, inputs)


def make_embedding(settings: options.Settings, backbone: Backbone) -> Embedding:
  """Returns how a fixed network makes features of pictures."""
  network: Any = settings.network
  where = 'config.network.feature_cache'
  return Embedding(
    backbone,
    settings.data.image_size,
    network.feature_views,
    settings.views,
    open_cache(network.feature_cache, 'features', where),
  )


def _load(
  configs: Sequence[ml_collections.ConfigDict],
  data: Domains,
  reads_target_labels: bool,
) -> list[Domains]:
  """Returns the domains of each run."""
  loaded = load_for_each(configs, data)
  if reads_target_labels:
    loaded = [
      hold_out(domains, config.run.seed)
      for domains, config in zip(loaded, configs, strict=True)
    ]
  return hold_once([match_classes(domains) for domains in loaded])


def _warn_of_target_labels(
  domains: Domains,
  config: ml_collections.ConfigDict,
  reads_target_labels: bool,
) -> None:
  if not reads_target_labels:
    return
  if config.data.target_labels:
    raise UserError(
      f"The method '{config.objective.method}' is trained on all labels of the "
      'target: config.data.target_labels adds nothing; leave it out.'
    )
  if domains.target.labels is None:
    raise UserError(
      f"The method is trained on the target's labels, and '"
      f"{domains.target.name}' has none."
    )
  _log.warning(
    '%s is trained on the labels of the target %s: an upper bound, not '
    'domain adaptation.',
    name_method(config.objective),
    domains.target.name,
  )
