"""The data of a config, described before any training."""

import pathlib

import ml_collections
import numpy as np
import tensorflow as tf

from moda_jax.data import load
from moda_jax.data.classes import match_classes
from moda_jax.data.domains import Domain, Domains
from moda_jax.data.labels import label_distances, label_shares
from moda_jax.data.options import ViewOptions
from moda_jax.data.rows import are_rows
from moda_jax.data.views import Views
from moda_jax.errors import UserError
from moda_jax.report import data_plots
from moda_jax.training import options
from moda_jax.training.devices import hide_from_tensorflow
from moda_jax.training.fitting import fit_network

_SAMPLES = 10
_BAR = 40  # characters of the longest bar


def describe(
  config: ml_collections.ConfigDict, folder: pathlib.Path
) -> tuple[str, list[pathlib.Path]]:
  """Returns the text; writes it and the pictures into `folder`.

  Returns:
    The text, and the files: `description.txt`, `labels.png`, and for images
    `samples.png`.
  """
  hide_from_tensorflow()
  settings = options.check(config)
  domains = load_whole(config)
  training = [*domains.sources, domains.target]
  labelled = [d for d in training if d.labels is not None]
  parts = [
    f'{config.experiment}: target {config.data.target}\n',
    _table(config, domains),
    *(_bars(domain) for domain in labelled),
    _distances(labelled),
  ]
  text = '\n'.join(parts)
  try:
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / 'description.txt', folder / 'labels.png']
    files[0].write_text(text)
  except OSError as error:
    raise UserError(
      f"--output='{folder}' cannot be written to: {error}."
    ) from error
  data_plots.plot_labels(labelled, files[1])
  if not are_rows(domains.target.inputs):
    files.append(folder / 'samples.png')
    data_plots.plot_samples(
      draw_views(settings.views, config.run.seed, training), files[-1]
    )
  return text, files


def load_whole(config: ml_collections.ConfigDict) -> Domains:
  """Returns the config's domains with all their examples, none left out."""
  whole = config.copy_and_resolve_references()
  whole.data.samples = 0
  if whole.data.evaluate_on == 'undrawn':
    whole.data.evaluate_on = 'target'
  opened = load.open_domains(whole)
  (made,) = load.load_for_each([fit_network(whole, opened)], opened)
  return match_classes(made)


def _table(config: ml_collections.ConfigDict, domains: Domains) -> str:
  rows: list[tuple[str, str, object, object, str]] = [
    ('domain', 'role', 'examples', 'trained on', 'data set')
  ]
  for domain in (*domains.sources, domains.target):
    role = 'target' if domain is domains.target else 'source'
    drawn = min(config.data.samples or domain.size, domain.size)
    rows.append((domain.name, role, domain.size, drawn, domain.origin))
  test, evaluated = domains.test, domains.test.size
  if config.data.evaluate_on == 'undrawn':
    evaluated = domains.target.size - drawn
  elif config.data.evaluate_on == 'target':
    evaluated = drawn
  rows.append((test.name, 'test', evaluated, '', test.origin))
  return ''.join(
    f'{name:12} {role:7} {examples!s:>9} {drawn!s:>10}  {origin}\n'
    for name, role, examples, drawn, origin in rows
  )


def _bars(domain: Domain) -> str:
  shares = label_shares(domain)
  counts = np.bincount(domain.known_labels, minlength=len(domain.classes))
  longest = max(len(name) for name in domain.classes)
  lines = [f'labels of {domain.name}\n']
  for name, share, count in zip(domain.classes, shares, counts, strict=True):
    bar = '█' * round(_BAR * share / shares.max())
    lines.append(f'  {name:{longest}} {100 * share:5.1f} % {count:6} {bar}\n')
  return ''.join(lines)


def _distances(domains: list[Domain]) -> str:
  lines = ['Jensen-Shannon distances of the labels (natural logarithm)\n']
  for (a, b), value in label_distances(domains).items():
    lines.append(f'  {a} ↔ {b}  {value:#.4g}\n')
  return ''.join(lines)


def draw_views(
  view_options: ViewOptions, seed: int, domains: list[Domain]
) -> dict[str, dict[str, np.ndarray]]:
  """Returns samples of each domain as they are, and in both of their views."""
  rng = np.random.default_rng(seed)
  chosen = [
    d.inputs[rng.choice(d.size, _SAMPLES, replace=d.size < _SAMPLES)]
    for d in domains
  ]
  views = Views(view_options, seed, augment_weak=True)
  step = tf.constant(0, tf.int64)
  weak = views.weak(tf.constant(np.stack(chosen)), step)
  return {
    domain.name: {
      'image': images,
      'weak': weak[i].numpy(),
      'strong': views.strong(weak[i], step).numpy(),
    }
    for i, (domain, images) in enumerate(zip(domains, chosen, strict=True))
  }
