r"""Label distributions of all domains, and how far apart they are.

  python -m experiments.label_shift --experiment=office31

Draws the share of each class in each domain, as in the paper's appendix, and
the Jensen-Shannon distances between them with the paper's in brackets. All
examples count, also where training draws some of them.
"""

import pathlib

import numpy as np
from absl import flags
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.figures import style
from experiments.figures.published import published_distance
from experiments.runs.scales import EXPERIMENTS, SCALES, Setting, find_setting
from moda_jax import cli
from moda_jax.data.domains import Domain
from moda_jax.data.labels import label_distances, label_shares
from moda_jax.report import palette


def load(setting: Setting) -> list[Domain]:
  """Returns all domains of an experiment, in the config's order."""
  from moda_jax.report.description import load_whole
  from moda_jax.training.config_files import get_config

  config = get_config(f'{setting.config}:{setting.targets[0]}')
  config.data.datasets.update(setting.datasets)
  domains = load_whole(config)
  found = {d.name: d for d in (*domains.sources, domains.target)}
  return [found[name] for name in config.data.datasets]


def draw(
  setting: Setting, domains: list[Domain], path: pathlib.Path
) -> list[pathlib.Path]:
  """Draws shares and distances; writes the numbers beside."""
  classes = domains[0].classes
  count = len(domains)
  figure = Figure((2.0 * count + 3.2, 2.8), layout='constrained')
  title = f'{setting.experiment}, data of the scale {setting.scale}'
  figure.suptitle(title, fontsize=7.5, color=palette.GREY)
  left, right = figure.subfigures(
    1, 2, squeeze=False, width_ratios=(2.0 * count, 3.2)
  )[0]
  panels = left.subplots(1, count, sharey=True, squeeze=False)[0]
  for axes, domain in zip(panels, domains, strict=True):
    shares = 100 * label_shares(domain)
    axes.bar(range(len(classes)), shares, color=style.domain_color(domain.name))
    axes.set_title(style.domain_name(domain.name))
    axes.set_xlabel('class')
    if len(classes) <= 12:
      axes.set_xticks(range(len(classes)), classes)
  panels[0].set_ylabel('share (%)')
  distances = label_distances(domains)
  _draw_distances(right.subplots(), domains, distances, setting.has_published)
  rows: list[list[object]] = [
    ['share', domain.name, name, share, '']
    for domain in domains
    for name, share in zip(classes, label_shares(domain), strict=True)
  ]
  for (a, b), value in distances.items():
    paper = published_distance(a, b) if setting.has_published else None
    rows.append(['distance', a, b, value, '' if paper is None else paper])
  header = ['kind', 'domain', 'class or domain', 'value', 'paper']
  return [*style.save(figure, path), style.write_csv(path, header, rows)]


def _draw_distances(
  axes: Axes,
  domains: list[Domain],
  distances: dict[tuple[str, str], float],
  has_published: bool,
) -> None:
  names = [domain.name for domain in domains]
  values = np.zeros((len(names), len(names)))
  for (a, b), value in distances.items():
    i, j = names.index(a), names.index(b)
    values[i, j] = values[j, i] = value
  axes.grid(False)
  axes.imshow(values, cmap='Blues', vmin=0, vmax=max(2 * values.max(), 1e-3))
  for i, j in np.ndindex(values.shape):
    if i != j:
      paper = published_distance(names[i], names[j]) if has_published else None
      text = f'{values[i, j]:.4f}' + (f'\n({paper:.4f})' if paper else '')
      axes.text(j, i, text, ha='center', va='center', fontsize=7)
  shown = [style.domain_name(name) for name in names]
  axes.set_xticks(range(len(names)), shown, rotation=30, ha='right')
  axes.set_yticks(range(len(names)), shown)
  axes.set_title('Jensen-Shannon distance')


def main() -> None:
  """Loads and draws."""
  setting = find_setting(_EXPERIMENT.value, _SCALE.value)
  path = pathlib.Path(_RESULTS.value) / f'label_shift_{setting.name}'
  print('\n'.join(str(file) for file in draw(setting, load(setting), path)))


if __name__ == '__main__':
  _EXPERIMENT = flags.DEFINE_enum(
    'experiment', 'digits', EXPERIMENTS, 'the experiment'
  )
  _SCALE = flags.DEFINE_enum('scale', 'paper', SCALES, 'whose data')
  _RESULTS = flags.DEFINE_string(
    'results', 'experiments/results', 'folder of the figures'
  )
  cli.run(main)
