"""The public API: train, adapt, load, and the run that they return."""

import functools
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import ml_collections
import numpy as np

from moda_jax import config as config_lib
from moda_jax.data import in_memory
from moda_jax.data.domains import Domain, Domains, map_domains
from moda_jax.data.fingerprints import fingerprint
from moda_jax.data.new_inputs import iter_new_images, prepare_new_inputs
from moda_jax.data.read_files import skip_unreadable
from moda_jax.errors import UserError
from moda_jax.models.backbone import Backbone
from moda_jax.objectives import metrics as names
from moda_jax.objectives import name_method
from moda_jax.training import display, labelling, loop, options, own_arrays
from moda_jax.training.config_files import own_data_config
from moda_jax.training.experiment import Experiment
from moda_jax.training.metrics_file import last_values
from moda_jax.training.outcome import summarise
from moda_jax.training.trained import Trained, load_trained

_DOMAINS = {'data.sources', 'data.target', 'data.datasets'}


class Run:
  """A trained run: what it predicts, how it went, where it is.

  Attributes:
    workdir: the run's folder.
    config: what was trained, in sections.
    classes: the class names, in the order of the probabilities.
    accuracy: on the target's test examples after the last step, a fraction;
      None where the labels of the target are not known.
    metrics: what was logged, one column per name; NaN where a line lacks it.
    source_weights: α by source, as last logged; empty for methods without.
  """

  def __init__(self, trained: Trained, experiment: Experiment | None = None):
    """Describes a run; `train`, `adapt` and `load` make them.

    Args:
      trained: the model and the run's folder.
      experiment: with the data, where it has just been trained.
    """
    self.workdir = trained.workdir
    self.config = trained.model.config
    self.classes = trained.model.inputs.classes
    self._trained = trained
    self._model = trained.model
    self._state = trained.state
    self._experiment = experiment

  def __repr__(self) -> str:
    accuracy = self.accuracy
    shown = 'unknown' if accuracy is None else f'{100 * accuracy:.2f} %'
    method = name_method(self.config.objective)
    return (
      f'Run({str(self.workdir)!r}, method={method!r}, '
      f'target={self.config.data.target!r}, step={int(self._state.step)}, '
      f'accuracy={shown})'
    )

  def __reduce__(self) -> Any:
    raise TypeError(
      f'A run is saved already, in {self.workdir}: moda_jax.load gives it back.'
    )

  def predict(self, inputs: Any) -> np.ndarray:
    """Returns class probabilities `[N, C]`, in the order of `classes`.

    Args:
      inputs: images of any size, brought to the network's: an array
        `[N, H, W, 3]`, or a list of arrays or of paths, bytes or floats in
        0..1. Or rows of features `[N, F]`, as the network takes them.
    """
    takes = self._model.inputs
    if takes.picture_size:
      shape = (takes.picture_size, takes.picture_size, 3)
      images = iter_new_images(inputs, shape)
      prepared = np.concatenate([self._backbone(some) for some in images])
    else:
      prepared = prepare_new_inputs(inputs, takes.shape, takes.padded)
    return self._model.predict_all(self._state, prepared)

  def label(
    self,
    images: str | os.PathLike,
    out: str | os.PathLike,
    threshold: float = 0.5,
  ) -> str:
    """Writes a table of the pictures in a folder; returns a line about it.

    Args:
      images: a folder, searched with all folders within it, or one picture.
      out: the `.csv` to write, with the columns of `labelling.HEADER`.
      threshold: below this probability the remark on a picture is 'unsure'.
    """
    out = pathlib.Path(out)
    labelling.check_flags(out, threshold)
    if not self.takes_images:
      raise UserError(
        f'{self.workdir} was trained on rows of features, not on pictures; '
        'moda_jax.load(…).predict takes such rows.'
      )
    files = labelling.find_pictures(pathlib.Path(images).expanduser())
    takes = self._model.inputs
    size = takes.picture_size or (0 if takes.padded else takes.shape[0])
    return labelling.label_pictures(
      self.predict, self.classes, files, out, threshold, size
    )

  def export(
    self, folder: str | os.PathLike, formats: Sequence[str] = ()
  ) -> pathlib.Path:
    """Writes the model for programs without moda_jax; returns the folder.

    Args:
      folder: what to write, with a model card that says how to load it.
      formats: of `export.formats.WRITERS`; by default all that work here.
    """
    from moda_jax.export.folder import write_folder

    backbone = self._backbone if self._model.inputs.picture_size else None
    return write_folder(self._trained, folder, formats, backbone)

  @functools.cached_property
  def _backbone(self) -> Backbone:
    if self._experiment is not None and self._experiment.backbone is not None:
      return self._experiment.backbone
    return self._trained.read_backbone()

  @property
  def takes_images(self) -> bool:
    """Whether `predict` takes images rather than rows of features."""
    return self._trained.takes_images

  @property
  def metrics(self) -> dict[str, np.ndarray]:
    """What was logged, as columns of arrays by name."""
    lines = self._trained.read_lines()
    columns = dict.fromkeys(name for line in lines for name in line)
    return {
      name: np.array([line.get(name, np.nan) for line in lines])
      for name in columns
    }

  @property
  def accuracy(self) -> float | None:
    """Target accuracy at the last evaluation; None without labels."""
    return self._trained.accuracy

  @property
  def source_weights(self) -> dict[str, float]:
    """The source weights α by source, averaged since the last line but one."""
    return names.select(last_values(self._trained.read_lines()), names.ALPHA)

  def evaluate(self) -> dict[str, float]:
    """Returns accuracies on the target's test examples, by name.

    They are read as in training, so the data must still be there.
    """
    experiment = self._open()
    state = experiment.evaluator.observe_sources(self._state)
    accuracies = experiment.evaluator.accuracies(state)
    if not accuracies:
      raise UserError(
        f"The labels of the target '{self.config.data.target}' are not known: "
        'there is nothing to evaluate on.'
      )
    return accuracies

  def report(self) -> pathlib.Path:
    """Writes the run's page from its data; returns the path."""
    from moda_jax import report

    experiment = self._open()
    outcome = summarise(experiment, self._state, self.workdir)
    return report.write_run_page(outcome, self.workdir)

  def _open(self) -> Experiment:
    """Returns the experiment with its data, read again for a loaded run."""
    if self._experiment is None:
      if 'memory' in self.config.data.datasets.values():
        raise UserError(
          f'{self.workdir} was trained on arrays in memory, which are not '
          'kept: call adapt with them again.'
        )
      self._experiment = Experiment(self.config)
    return self._experiment


def train(
  config: ml_collections.ConfigDict,
  workdir: str | os.PathLike,
  data: Domains | None = None,
  start_from: str | os.PathLike | None = None,
) -> Run:
  """Trains what a config describes, or goes on with it; returns the run.

  Args:
    config: such as `moda_jax.get_config('mini:mnistm')`.
    workdir: the run's folder; the same call again resumes.
    data: whole domains in memory, instead of those that the config names.
    start_from: the folder of another run, whose last state a new run starts
      with.
  """
  with display.show_log():
    outcome = loop.train(config, workdir, data, start_from=start_from)
  experiment = outcome.experiment
  trained = Trained(pathlib.Path(workdir), experiment.model, outcome.state)
  return Run(trained, experiment)


def load(workdir: str | os.PathLike) -> Run:
  """Returns the run in a folder, from the folder alone.

  Training data is not read; weights of a fixed network are in the folder.
  """
  return Run(load_trained(workdir))


def adapt(
  data: Mapping[str, tuple[Any, Any]],
  target: str,
  workdir: str | os.PathLike,
  **values: Any,
) -> Run:
  """Trains on arrays in memory, `{name: (inputs, labels)}`; returns the run.

  Args:
    data: the domains; see `moda_jax.data.in_memory.make_domain` for what their
      arrays may be. A list of images of different sizes, or of paths, is
      brought to `image_size`. Labels are whole numbers or names, in arrays,
      lists or pandas' columns, matched by name across domains; those of the
      target serve evaluation alone, and may be None. A dot in the name of a
      domain becomes '_'.
    target: which of them is the target; the others are sources.
    workdir: the run's folder, as for the command line.
    **values: values of the config, such as `method='fm'` or `steps=1000`.

  >>> run = moda_jax.adapt(
  ...   {'a': (images_a, labels_a), 'b': (images_b, labels_b),
  ...    't': (images_t, None)},
  ...   target='t', workdir='runs/mine', steps=2000)
  >>> run.predict(images_t).argmax(axis=1)
  """
  config = own_data_config()
  set_values(config, values)
  data, target = own_arrays.to_plain(data, target)
  whole = in_memory.make_domains(data, target)
  if config.data.skip_unreadable:
    whole = map_domains(whole, skip_unreadable)
  config.data.datasets.update(dict.fromkeys(data, 'memory'))
  config.data.target = target
  config.data.sources = tuple(source.name for source in whole.sources)
  if config.data.evaluate_on == 'test_split':
    raise UserError(
      "evaluate_on='test_split': arrays have no test split; use 'target' or "
      "'undrawn'."
    )
  sources = tuple(_sign(source) for source in whole.sources)
  signed = _sign(whole.target)
  return train(config, workdir, Domains(sources, signed, signed))


def set_values(
  config: ml_collections.ConfigDict, values: Mapping[str, Any]
) -> None:
  """Sets values by short or full name; refuses what is not read."""
  given = []
  for name, value in values.items():
    full = config_lib.full_name(config, name)
    if full is None or full in _DOMAINS:
      known = ', '.join(sorted(set(config_lib.leaves(config)) - _DOMAINS))
      raise UserError(
        f'{name}: not a value that can be set here; these can: {known}.'
      )
    section, leaf = full.split('.')
    if isinstance(value, np.generic):
      value = value.item()
    try:
      config[section][leaf] = value
    except TypeError as error:
      raise UserError(f'{full}: {error}.') from error
    given.append(full)
  config_lib.choose_length(config, given)
  options.refuse_unread(config, given)


def _sign(domain: Domain) -> Domain:
  """Names the arrays by their content: a run of others is not resumed."""
  return domain._replace(origin=f'memory {fingerprint(domain)}')
