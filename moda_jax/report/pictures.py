"""Pictures of the target, as galleries with what the run says about them."""

import contextlib
import pathlib
from typing import NamedTuple

import numpy as np

from moda_jax.data.domains import Domain
from moda_jax.errors import UserError
from moda_jax.files import images
from moda_jax.report.examination import Predicted
from moda_jax.report.html import escape, gallery, picture
from moda_jax.training.experiment import Experiment
from moda_jax.training.train_step import TrainState

_SHOWN = 12
_FOLDER = 'folder '  # how the origin of pictures in a folder begins


class ViewSamples(NamedTuple):
  """Target images of one mini-batch, with what the classifier says about them.

  Attributes:
    views: name to images `[N, H, W, 3]` uint8, the same samples in each.
    pseudo_labels: `[N]` class names, from the weak view.
    confidences: `[N]`, the probabilities of those classes.
    threshold: τ; None for a method that does not use pseudo-labels.
  """

  views: dict[str, np.ndarray]
  pseudo_labels: list[str]
  confidences: np.ndarray
  threshold: float | None


def collect_views(
  experiment: Experiment, state: TrainState
) -> ViewSamples | None:
  """Returns target inputs as the method saw them; None if they are not images.

  Of several seeds it is the first one's batch, with the average of what all of
  them predict.
  """
  target = experiment.make_batch(0)['target']
  spec = experiment.method.batch_spec
  views = {k: target[k][:_SHOWN] for k in spec.target_views}
  views = {k: x for k, x in views.items() if x.ndim == 4}
  if not views:
    return None
  probabilities = experiment.predict(state, views['weak'])
  classes = experiment.domains.target.classes
  return ViewSamples(
    views=views,
    pseudo_labels=[classes[i] for i in np.argmax(probabilities, axis=-1)],
    confidences=np.max(probabilities, axis=-1),
    threshold=experiment.method.confidence_threshold,
  )


def show_views(samples: ViewSamples) -> str:
  """Returns a gallery of samples, their views side by side."""
  cards = []
  for i, label in enumerate(samples.pseudo_labels):
    shown = [picture(x[i], f'{name} view') for name, x in samples.views.items()]
    confidence = samples.confidences[i]
    used = samples.threshold is not None and confidence > samples.threshold
    caption = f'{escape(label)} <span>{confidence:.2f}</span>'
    if used:
      caption = f'<span class="used">✓ {caption}</span>'
    cards.append((shown, caption))
  return gallery(cards)


def explain_views(samples: ViewSamples) -> str:
  """Says how to read `show_views`."""
  named = ' and '.join(f'{name} view' for name in samples.views)
  text = (
    f'Each sample in its {named}, with the class given to the weak view and '
    'how probable it is.'
  )
  if samples.threshold is not None and 'strong' in samples.views:
    text += (
      f' ✓ marks those above τ = {samples.threshold:g}, whose strong view is '
      'trained towards that class.'
    )
  return text


def find_mistakes(predicted: Predicted) -> np.ndarray:
  """Returns the places of wrong answers, the most confident first."""
  wrong = np.flatnonzero(predicted.classes != predicted.domain.known_labels)
  return wrong[np.argsort(-predicted.confidences[wrong], kind='stable')]


def find_unsure(predicted: Predicted) -> np.ndarray:
  """Returns the places of all answers, the least confident first."""
  return np.argsort(predicted.confidences, kind='stable')


def show_answers(predicted: Predicted, places: np.ndarray) -> str:
  """Returns a gallery of examples with answer and truth, if any has pixels."""
  classes = predicted.domain.classes
  cards = []
  for place in places[:_SHOWN]:
    pixels = find_pixels(predicted.domain, int(place))
    if pixels is None:
      continue
    answer = classes[predicted.classes[place]]
    caption = f'<b>{escape(answer)}</b> {predicted.confidences[place]:.2f}'
    if predicted.domain.labels is not None:
      truth = classes[predicted.domain.labels[place]]
      caption += f'<br>is {escape(truth)}'
    cards.append(([picture(pixels, answer)], caption))
  return gallery(cards) if cards else ''


def find_pixels(domain: Domain, place: int) -> np.ndarray | None:
  """Returns the picture of an example, from its file where there is one."""
  if domain.examples and domain.origin.startswith(_FOLDER):
    root = pathlib.Path(domain.origin.removeprefix(_FOLDER)).expanduser()
    for folder in (root, root / 'images'):
      file = folder / domain.examples[place]
      with contextlib.suppress(UserError, OSError):
        image = images.decode(file.read_bytes(), file.name)
        return np.asarray(images.to_rgb(images.turn_upright(image)))
  pixels = domain.inputs[place]
  are_pixels = getattr(pixels, 'dtype', None) == np.uint8 and pixels.ndim == 3
  return pixels if are_pixels else None
