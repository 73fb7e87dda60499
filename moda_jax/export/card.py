"""The model card: what a model was trained on and takes, and how to load it."""

import re
from collections.abc import Sequence

import jax

import moda_jax
from moda_jax.export.formats import PLATFORMS, input_shape
from moda_jax.export.onnx_file import INSTALLING
from moda_jax.objectives import name_method
from moda_jax.training.progress import format_accuracy
from moda_jax.training.recorded import read_recorded
from moda_jax.training.trained import Trained

_PICTURE = """\
picture = ImageOps.exif_transpose(Image.open('picture.jpg')).convert('RGB')
picture = picture.resize(({width}, {height}), Image.Resampling.BILINEAR)
inputs = np.asarray(picture)[None]  # [1, {height}, {width}, 3], uint8
"""
_ROWS = """\
inputs = np.load('rows.npy').astype(np.float32)  # [N, {features}]
"""
_ANSWER = """\
classes = json.loads(pathlib.Path('classes.json').read_text('utf-8'))
print([classes[i] for i in probabilities.argmax(axis=1)])
"""
_LOADING = {
  'stablehlo': """\
model = export.deserialize(pathlib.Path('model.stablehlo').read_bytes())
{inputs}probabilities = np.asarray(model.call(inputs))
""",
  'savedmodel': """\
model = tf.saved_model.load('savedmodel')
{inputs}probabilities = model.predict(inputs)['probabilities'].numpy()
""",
  'onnx': """\
model = onnxruntime.InferenceSession('model.onnx')
{inputs}(probabilities,) = model.run(['probabilities'], {{'inputs': inputs}})
""",
}
_IMPORTS = {
  'stablehlo': ['import numpy as np', 'from jax import export'],
  'savedmodel': ['import numpy as np', 'import tensorflow as tf'],
  'onnx': ['import numpy as np', 'import onnxruntime'],
}
_TITLES = {
  'stablehlo': 'JAX: `model.stablehlo`',
  'savedmodel': 'TensorFlow: `savedmodel/`',
  'onnx': 'ONNX: `model.onnx`',
}
_NEEDS = {
  'stablehlo': (
    f'Runs on {", ".join(PLATFORMS)}. Needs the packages jax '
    f'(≥ {jax.__version__}) and flatbuffers'
  ),
  'savedmodel': 'Needs the package tensorflow',
  'onnx': (
    'Opset 23: takes `inputs`, gives `probabilities`. Needs the package '
    'onnxruntime (≥ 1.24.1)'
  ),
}
_WITHOUT_ONNX = (
  f'ONNX is not here. To get it: `{INSTALLING}`, then `python -m '
  'moda_jax.export --workdir=RUN --to=NEW_FOLDER --formats=onnx`.'
)


def make_card(trained: Trained, formats: Sequence[str]) -> str:
  """Returns the card's text, in Markdown.

  Args:
    trained: the model and the run's folder.
    formats: those that are beside the card.
  """
  data = trained.model.config.data
  sections = [
    f'# Classifier for {data.target}, trained without its labels'
    if not trained.model.method.batch_spec.target_labels
    else f'# Classifier for {data.target}',
    _describe_training(trained),
    f'## Input\n\n{_describe_input(trained)}',
    f'## Output\n\n{_describe_output(trained)}',
    '## Loading\n\nIn this folder; moda_jax is not needed.',
    *(_show_loading(trained, name) for name in formats),
    *([] if 'onnx' in formats else [_WITHOUT_ONNX]),
    f'Written by moda_jax {moda_jax.__version__} with JAX {jax.__version__}.',
  ]
  return '\n\n'.join(sections) + '\n'


def _describe_training(trained: Trained) -> str:
  config, model = trained.model.config, trained.model
  # A card is handed on: where the data lay on this machine is left out.
  origins = {
    name: re.sub(r'^(folder|npz) .*/', r'\1 ', origin)
    for name, origin in read_recorded(trained.workdir).origins.items()
  }
  lines = ['## Training', '']
  for domain in config.data.sources:
    lines.append(f'- source {domain}: {origins.get(domain, "unknown")}')
  target = config.data.target
  lines.append(f'- target {target}: {origins.get(target, "unknown")}')
  lines.append(
    f'- method `{name_method(config.objective)}`, '
    f'network `{config.network.name}`, '
    f'{int(trained.state.step):,} steps, '
    f'{"seeds" if len(model.seeds) > 1 else "seed"} '
    + ', '.join(str(seed) for seed in model.seeds)
  )
  if 'weights' in origins:
    lines.append(f'- pretrained weights: {origins["weights"]}')
  lines.append(f'- {_describe_accuracy(trained)}')
  return '\n'.join(lines)


def _describe_accuracy(trained: Trained) -> str:
  accuracy, model = trained.accuracy, trained.model
  if accuracy is None:
    return 'accuracy on the target: not known, as its labels are not'
  said = f"accuracy on the target's test examples: {format_accuracy(accuracy)}"
  if model.method.caution:
    said += f' ({model.method.caution})'
  several = _name_averaged(trained)
  if several:
    said += (
      f'; this model gives the mean over {several}, which was not evaluated'
    )
  return said


def _name_averaged(trained: Trained) -> str:
  """Names those whose probabilities are averaged; '' for a single one."""
  parts = []
  if trained.model.method.predictors:
    parts.append('the predictors of each source')
  if len(trained.model.seeds) > 1:
    parts.append(f'the {len(trained.model.seeds)} seeds')
  return ' and '.join(parts)


def _describe_input(trained: Trained) -> str:
  shape = input_shape(trained.model.inputs)
  if not trained.takes_images:
    return _describe_rows(trained, shape[0])
  height, width, _ = shape
  text = (
    f'Images `[b, {height}, {width}, 3]`, uint8, red, green and blue in '
    '0..255, any number b of them. Conversion to floats and normalisation are '
    'part of the model.\n\n'
    'Pictures must be prepared as in training: turned upright '
    'as their EXIF orientation says, grey repeated in three channels, '
    'transparency dropped, of 16 bits per channel the upper 8 taken'
  )
  if height != width:
    return f'{text}. Images of other sizes were not used.'
  if trained.model.inputs.padded and not trained.model.inputs.picture_size:
    text += (
      '; then images of 28 × 28 get a margin of 2 black pixels on each side'
    )
  return (
    f'{text}; then the whole picture is resized to {height} × {width} with '
    'Pillow, `Image.resize(size, Image.Resampling.BILINEAR)`: the ratio of its '
    'sides is not kept, nothing is cropped, and when it shrinks the filter '
    'covers all pixels (as `antialias=True` does elsewhere), unlike the '
    'bilinear sampling of OpenCV.'
  )


def _describe_rows(trained: Trained, features: int) -> str:
  text = (
    f'Rows of features `[b, {features}]`, float32, any number b of them, the '
    'columns as in training. If the network standardises columns, that is part '
    'of the model.'
  )
  if trained.model.config.data.get('features', 'counts') == 'tfidf':
    text += (
      '\n\nTraining weighted counts of words by tf-idf, and inputs must be '
      'weighted in the same way: each count times ln((1 + n) / (1 + df)) + 1, '
      'with n training examples of all domains, of which df have the word, and '
      'each row then scaled to length 1. That is not part of the model.'
    )
  return text


def _describe_output(trained: Trained) -> str:
  count = len(trained.model.inputs.classes)
  text = (
    f'Probabilities `[b, {count}]`, float32, in the order of the names in '
    '`classes.json`; each row sums to 1.'
  )
  several = _name_averaged(trained)
  return text + (f' They are the mean over {several}.' if several else '')


def _show_loading(trained: Trained, name: str) -> str:
  shape = input_shape(trained.model.inputs)
  imports = ['import json', 'import pathlib', '', *_IMPORTS[name]]
  pillow = '; pillow to read pictures' if trained.takes_images else ''
  if trained.takes_images:
    inputs = _PICTURE.format(height=shape[0], width=shape[1])
    imports.append('from PIL import Image, ImageOps')
  else:
    inputs = _ROWS.format(features=shape[0])
  code = _LOADING[name].format(inputs=inputs) + _ANSWER
  imported = '\n'.join(imports)
  return (
    f'### {_TITLES[name]}\n\n{_NEEDS[name]}{pillow}.\n\n'
    f'```python\n{imported}\n\n{code}```'
  )
