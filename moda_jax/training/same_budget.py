"""Several methods under one budget: the same data, length and seed."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import ml_collections

from moda_jax.data import labelled
from moda_jax.data.domains import Domains
from moda_jax.data.load import open_domains
from moda_jax.errors import UserError
from moda_jax.objectives import METHODS, given_parts
from moda_jax.training import options
from moda_jax.training.fitting import fit_length, fit_network
from moda_jax.training.meaning import describe_meaning
from moda_jax.training.variants import (
  Variant,
  apply_variant,
  parse_variants,
)

BASELINE = 'source_only'
_HOLDOUT = 0.1


class Plan(NamedTuple):
  """What is trained.

  Attributes:
    whole: the data that all runs draw from.
    configs: of the runs, by method and values, see `Variant`; that without
      adaptation comes first.
  """

  whole: Domains
  configs: dict[str, ml_collections.ConfigDict]

  @property
  def steps(self) -> int:
    """The length of every run."""
    return self.configs[BASELINE].run.steps

  def without(self, method: str, source: str) -> 'Plan':
    """Returns the plan of one method with a source left out."""
    config = self.configs[method].copy_and_resolve_references()
    names = tuple(name for name in config.data.sources if name != source)
    config.data.sources = names
    kept = tuple(s for s in self.whole.sources if s.name != source)
    return Plan(self.whole._replace(sources=kept), {method: config})


def plan(config: ml_collections.ConfigDict, methods: Iterable[str]) -> Plan:
  """Opens the data and fixes what the config leaves open, for all methods.

  An epoch is that of the largest domain, also for methods that do not read the
  target. Where nothing is held out of the sources, a tenth is: it judges the
  runs, and tells the target's classes.

  Args:
    config: of the experiment; its own method is replaced.
    methods: names, or methods at values of their own, see `parse_variant`;
      `source_only` is among them in any case.
  """
  variants = parse_variants((BASELINE, *methods))
  config = config.copy_and_resolve_references()
  config.data.holdout = config.data.holdout or _HOLDOUT
  _check(config, variants)
  whole = labelled.add_source(open_domains(config), config.data)
  config = fit_network(config, whole)
  data = config.data
  largest = max(data.samples or d.size for d in (*whole.sources, whole.target))
  length = fit_length(config, -(-largest // data.batch_size))
  config.run.steps, config.run.epochs = length, 0
  return Plan(whole, {v.text: apply_variant(config, v) for v in variants})


def _check(
  config: ml_collections.ConfigDict, variants: Sequence[Variant]
) -> None:
  """Refuses, before any training, what cannot be compared."""
  for kind, part in given_parts(config.objective).items():
    raise UserError(
      f"config.objective.{kind} = '{part}': all methods would have it; leave "
      f'it out, or give it to one, as in --methods=moda_fm:{kind}={part}.'
    )
  for variant in variants:
    if METHODS[variant.method].batch_spec.target_labels:
      raise UserError(
        f"--methods: '{variant.method}' is trained on all labels of the "
        'target; without them there is no such run, so it is not one to choose.'
      )
  configs = {v.text: apply_variant(config, v) for v in variants}
  for own in configs.values():
    options.check(labelled.name_source(own))
  _refuse_twins(configs)
  if len(variants) == 1:
    raise UserError(
      f'--methods: {BASELINE} alone; name one to compare it with.'
    )
  if config.run.seeds > 1:
    raise UserError(
      f'config.run.seeds = {config.run.seeds}: methods are compared by one '
      'seed each; --config.run.seed= sets which.'
    )


def _refuse_twins(configs: Mapping[str, ml_collections.ConfigDict]) -> None:
  """Refuses two that compute the same, which would count twice in a vote."""
  known: dict[str, str] = {}
  for text, config in configs.items():
    meaning = json.dumps(describe_meaning(config), sort_keys=True)
    other = known.setdefault(meaning, text)
    if other != text:
      raise UserError(
        f"--methods: '{other}' and '{text}' are the same parts at the same "
        'values; name one of them.'
      )
