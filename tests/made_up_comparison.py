"""Comparisons as they are shown, with made-up predictions."""

import pathlib

import numpy as np
import tiny

from moda_jax.report import compared, worth
from moda_jax.report.candidates import Looked
from moda_jax.report.choice import choose
from moda_jax.report.compared import Compared
from moda_jax.selection.criteria import CRITERIA
from moda_jax.selection.observed import Observed
from moda_jax.training.same_budget import BASELINE

CLASSES = 3


def make_run(name, sharpness, seed=0, count=32, **values):
  """Returns a run that is right the surer, the larger its sharpness."""
  rng = np.random.default_rng(seed)
  truth = tiny.make_domains().target.labels[:count]
  logits = sharpness * np.eye(CLASSES)[truth] + rng.normal(
    size=(count, CLASSES)
  )
  p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
  known = np.eye(CLASSES)[np.arange(30) % CLASSES] * 0.7 + 0.1
  made = {
    'scores': {
      n: c.measure(Observed(p))
      for n, c in CRITERIA.items()
      if c.can_measure(Observed(p))
    },
    'judged': p,
    'known': (known, np.arange(30) % CLASSES),
    'features': {d: i + rng.normal(size=(20, 4)) for i, d in enumerate('abct')},
    'predicted': p,
    'accuracy': float((p.argmax(axis=1) == truth).mean()),
    'labelled': (0, 0),
    'alpha': {},
  }
  return Looked(name=name, workdir=pathlib.Path(name), **made | values)


def collapse(name):
  p = np.tile([0.98, 0.01, 0.01], (32, 1))
  return make_run(name, 1)._replace(judged=p, scores={'entropy': 0.1})


def make_compared(runs, labels='', **values):
  config = tiny.make_run_config(target_labels=labels, evaluate_on='target')
  domains = tiny.make_domains()
  choice = choose(runs)
  order = choice.ranking.orders[choice.ranking.criterion]
  weighted = worth.find_weighted(runs, order)
  made = {
    'config': config,
    'looked': runs,
    'choice': choice,
    'worth': worth.value_sources(runs, choice.name, order),
    'weighted': weighted.name if weighted else '',
    'shares': compared.find_shares(domains.sources),
    'classes': worth.estimate_classes(runs[-1]),
    'sampled': domains.target,
    'written': domains.target,
    'to_label': compared.find_to_label(runs, choice, domains.target, labels),
  }
  return Compared(**made | values)


ALPHA = {'a': 0.7, 'b': 0.2, 'c': 0.1}
RUNS = [
  make_run(BASELINE, 0.5),
  make_run('fm', 5, 1),
  make_run('moda', 3, 2, alpha=ALPHA),
]
