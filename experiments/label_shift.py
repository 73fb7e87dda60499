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

Distances = dict[tuple[str, str], float]  # by the names of two domains


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
  distances = label_distances(domains)
  figure = make_figure(setting, domains, distances)
  rows: list[list[object]] = [
    ['share', domain.name, name, share, '']
    for domain in domains
    for name, share in zip(domain.classes, label_shares(domain), strict=True)
  ]
  for (a, b), value in distances.items():
    paper = published_distance(a, b) if setting.has_published else None
    rows.append(['distance', a, b, value, '' if paper is None else paper])
  header = ['kind', 'domain', 'class or domain', 'value', 'paper']
  return [*style.save(figure, path), style.write_csv(path, header, rows)]


def make_figure(
  setting: Setting, domains: list[Domain], distances: Distances
) -> Figure:
  """Returns a panel of shares for each domain, and one of distances."""
  classes = domains[0].classes
  widths = (1.0 + 1.5 * len(domains), 1.1 + 0.85 * (len(domains) - 1))
  height = max(widths[1], 0.9 + 0.14 * len(classes))
  figure = Figure((sum(widths), height), layout='constrained')
  title = f'{setting.experiment}, data of the scale {setting.scale}'
  figure.suptitle(title, fontsize=7.5, color=palette.GREY)
  left, right = figure.subfigures(1, 2, squeeze=False, width_ratios=widths)[0]
  panels = left.subplots(1, len(domains), sharex=True, sharey=True)
  for axes, domain in zip(panels, domains, strict=True):
    shares = 100 * label_shares(domain)
    color = style.domain_color(domain.name)
    axes.barh(range(len(classes)), shares, color=color)
    axes.set_title(style.domain_name(domain.name))
    axes.set_xlabel('share (%)')
    axes.grid(False, axis='y')
  panels[0].set_yticks(range(len(classes)), classes)
  panels[0].tick_params(axis='y', labelsize=7)
  panels[0].set_ylim(len(classes) - 0.4, -0.6)
  _draw_distances(right.subplots(), domains, distances, setting.has_published)
  return figure


def _draw_distances(
  axes: Axes,
  domains: list[Domain],
  distances: Distances,
  has_published: bool,
) -> None:
  """Draws each pair once: the upper triangle without the diagonal."""
  names = [domain.name for domain in domains]
  rows, columns = names[:-1], names[1:]
  values = np.full((len(rows), len(columns)), np.nan)
  for (a, b), value in distances.items():
    i, j = rows.index(a), columns.index(b)
    values[i, j] = value
    text = f'{value:#.3g}'
    if has_published and (paper := published_distance(a, b)):
      text += f'\n({paper:#.3g})'
    axes.text(j, i, text, ha='center', va='center', fontsize=7)
  # Twice the largest, so that black can be read on all of them.
  most = max(2 * np.nanmax(values), 1e-3)
  axes.imshow(values, cmap=palette.SEQUENTIAL, vmin=0, vmax=most)
  axes.grid(False)
  shown = [style.domain_name(name) for name in columns]
  axes.set_xticks(range(len(columns)), shown, rotation=30, ha='right')
  axes.set_yticks(range(len(rows)), [style.domain_name(n) for n in rows])
  axes.set_title('Jensen-Shannon distance' + "\n(the paper's)" * has_published)


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
