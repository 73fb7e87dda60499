"""What a run's folder gives back: the model, its last state, how it went."""

import os
import pathlib
from typing import NamedTuple

import ml_collections

from moda_jax.models.backbone import Backbone
from moda_jax.training.backbone_file import find_backbone
from moda_jax.training.devices import check_devices
from moda_jax.training.evaluation import ACCURACY
from moda_jax.training.kept import find_preferred
from moda_jax.training.model import Inputs, Model
from moda_jax.training.recorded import read_recorded
from moda_jax.training.run_folder import read_metrics
from moda_jax.training.saved_states import find_steps, load_state
from moda_jax.training.train_step import TrainState


class Trained(NamedTuple):
  """A trained model and the folder of its run.

  Attributes:
    workdir: the run's folder.
    model: what was trained.
    state: after its last step, or at the evaluation that `run.selection` has
      chosen.
  """

  workdir: pathlib.Path
  model: Model
  state: TrainState

  @property
  def takes_images(self) -> bool:
    """Whether it predicts from images rather than from rows of features."""
    inputs = self.model.inputs
    return inputs.are_images or inputs.picture_size > 0

  @property
  def accuracy(self) -> float | None:
    """Target accuracy at the state's last evaluation; None without labels."""
    step = int(self.state.step)
    found = [
      m[ACCURACY]
      for m in self.read_lines()
      if ACCURACY in m and m['step'] <= step
    ]
    return found[-1] if found else None

  def read_lines(self) -> list[dict[str, float]]:
    """Returns what was logged up to the last checkpoint."""
    step = max([int(self.state.step), *find_steps(self.workdir)])
    return [m for m in read_metrics(self.workdir) if m['step'] <= step]

  def read_backbone(self) -> Backbone:
    """Reads the fixed network that computes the model's inputs."""
    weights = read_recorded(self.workdir).origins['weights']
    path = self.model.config.network.pretrained
    return find_backbone(self.workdir, path, weights)


def load_trained(workdir: str | os.PathLike) -> Trained:
  """Reads a run from its folder alone, without training data."""
  check_devices()
  recorded = read_recorded(workdir)
  if recorded.inputs is None:  # a run of version 0.1, which has no criteria
    state = load_state(workdir)
    inputs = _guess_inputs(state, recorded.config, recorded.origins)
    model = Model(recorded.config, inputs)
  else:
    model = Model(recorded.config, recorded.inputs)
    preferred = find_preferred(workdir, model)
    state = load_state(workdir, preferred=preferred)
  return Trained(pathlib.Path(workdir), model, state)


def _guess_inputs(
  state: TrainState,
  config: ml_collections.ConfigDict,
  origins: dict[str, str],
) -> Inputs:
  """Returns what a run of version 0.1 takes, which did not record it.

  The number of classes is that of the logits, and the classes are called by
  their numbers; inputs are images of the config's size, or else 32 × 32.
  """
  classifier, extractor = state.params['classifier'], state.params['extractor']
  layers = [name for name in classifier if name.startswith('Dense')]
  last = max(layers, key=lambda name: int(name.rpartition('_')[2]))
  classes = classifier[last]['bias'].shape[-1]
  shape: tuple[int, ...] = (config.data.image_size or 32,) * 2 + (3,)
  if 'Dense_0' in extractor:
    shape = (extractor['Dense_0']['kernel'].shape[-2],)
  variant = origins.get('weights', '').partition(',')[0]
  if config.network.name == 'resnet50':
    variant = variant or 'torchvision'
  return Inputs(shape, tuple(str(i) for i in range(classes)), variant)
