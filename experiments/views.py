r"""Sample images of all domains, original and in their weak and strong views.

  python -m experiments.views --experiment=digits --scale=small

As in the paper's appendix; the class of each sample is in brackets.
"""

import pathlib

import numpy as np
import tensorflow as tf
from absl import flags
from matplotlib.figure import Figure

from experiments import label_shift
from experiments.figures import style
from experiments.runs.scales import SCALES, Setting, find_setting
from moda_jax import cli
from moda_jax.data.domains import Domain
from moda_jax.data.options import ViewOptions
from moda_jax.data.views import Views
from moda_jax.report import palette
from moda_jax.training import options
from moda_jax.training.config_files import get_config

_VIEWS = ('original', 'weak', 'strong')


def choose(domain: Domain, count: int, seed: int) -> np.ndarray:
  """Returns the places of samples of different classes, as far as these go."""
  rng = np.random.default_rng(seed)
  order = rng.permutation(domain.size)
  _, first = np.unique(domain.known_labels[order], return_index=True)
  chosen = rng.permutation(order[first])
  rest = np.setdiff1d(order, chosen)
  return np.concatenate([chosen, rng.permutation(rest)])[:count]


def make_views(
  images: np.ndarray, view_options: ViewOptions, seed: int
) -> list[np.ndarray]:
  """Returns images `[N, H, W, 3]` as they are and in both views."""
  views = Views(view_options, seed, augment_weak=True)
  step = tf.constant(0, tf.int64)
  weak = views.weak(tf.constant(images[None]), step)[0]
  return [images, weak.numpy(), views.strong(weak, step).numpy()]


def draw(
  setting: Setting,
  domains: list[Domain],
  path: pathlib.Path,
  count: int = 4,
  seed: int = 0,
) -> list[pathlib.Path]:
  """Draws a block of rows for each domain; writes which samples they are."""
  config = get_config(f'{setting.config}:{setting.targets[0]}')
  view_options = options.check(config).views
  size = (0.55 * 3 * count + 0.5, 0.78 * len(domains) + 0.4)
  figure = Figure(size, layout='constrained')
  title = f'{setting.experiment}, data of the scale {setting.scale}'
  figure.suptitle(title, fontsize=7.5, color=palette.GREY)
  grid = figure.subplots(len(domains), 3 * count, squeeze=False)
  rows: list[list[object]] = []
  for number, (row, domain) in enumerate(zip(grid, domains, strict=True)):
    places = choose(domain, count, seed)
    triples = make_views(domain.inputs[places], view_options, seed + number)
    for i, place in enumerate(places):
      name = domain.classes[domain.known_labels[place]]
      rows.append([domain.name, int(place), name])
      for j, images in enumerate(triples):
        axes = row[3 * i + j]
        axes.imshow(images[i], interpolation='nearest')
        axes.grid(False)
        axes.set_xticks([])
        axes.set_yticks([])
        if number == 0:
          axes.set_title(_VIEWS[j], fontsize=6.5)
      row[3 * i + 1].set_xlabel(f'[{name}]', fontsize=6.5, labelpad=1)
    row[0].set_ylabel(style.domain_name(domain.name), fontsize=8)
  header = ['domain', 'example', 'class']
  return [*style.save(figure, path), style.write_csv(path, header, rows)]


def main() -> None:
  """Loads and draws."""
  setting = find_setting(_EXPERIMENT.value, _SCALE.value)
  path = pathlib.Path(_RESULTS.value) / f'views_{setting.name}'
  domains = label_shift.load(setting)
  files = draw(setting, domains, path, _COUNT.value, _SEED.value)
  print('\n'.join(str(file) for file in files))


if __name__ == '__main__':
  _EXPERIMENT = flags.DEFINE_enum(
    'experiment', 'digits', ['digits', 'office31'], 'the experiment'
  )
  _SCALE = flags.DEFINE_enum('scale', 'paper', SCALES, 'whose data')
  _COUNT = flags.DEFINE_integer('count', 4, 'samples per domain', lower_bound=1)
  _SEED = flags.DEFINE_integer('seed', 0, 'of the samples and views')
  _RESULTS = flags.DEFINE_string(
    'results', 'experiments/results', 'folder of the figures'
  )
  cli.run(main)
