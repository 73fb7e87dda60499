"""Candidates ranked by every criterion, without labels of the target."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from moda_jax.errors import UserError
from moda_jax.selection import certainty
from moda_jax.selection.agreement import AGREEMENT, agreements
from moda_jax.selection.criteria import CRITERIA

# What chooses where the user names nothing: the first one that every candidate
# has. Its authors find that agreement never takes the worst of many, and no
# method trains for it, as several do for low entropy. Of two candidates there
# is no majority; among criteria that need no others, entropy loses the fewest
# points in the results of skada-bench (Lalou et al., 2024: 2.8 on average over
# 29 shifts with one source), followed by weighted accuracy (3.1), which asks
# for held-out source examples.
DEFAULTS = (AGREEMENT, 'entropy', 'weighted_accuracy')

# The accuracy that a search found at a run's values, each source left out in
# turn: known of runs that belong to a search alone.
LEFT_OUT = 'left_out'


class Candidate(NamedTuple):
  """A model that may be chosen.

  Attributes:
    name: unlike all others.
    scores: by criterion, a row of `CRITERIA` or `LEFT_OUT`; those that are
      not known are missing.
    probabilities: predicted for the target's examples, `[N, C]`, the same
      examples for all candidates; None where they are not known.
    effective_classes: see `certainty.effective_classes`, where there are no
      probabilities to take it from.
    classes: C, where there are no probabilities.
  """

  name: str
  scores: Mapping[str, float]
  probabilities: np.ndarray | None = None
  effective_classes: float | None = None
  classes: int = 0


class Ranking(NamedTuple):
  """What the criteria say of candidates.

  Attributes:
    orders: by criterion, the names of candidates with a score, best first.
    scores: by criterion, the scores by name, agreement among them.
    refused: why a candidate cannot be chosen, by name; these are in no order.
    criterion: what chose.
    chosen: the name; '' where all are refused.
    reason: a sentence about the choice.
  """

  orders: dict[str, tuple[str, ...]]
  scores: dict[str, dict[str, float]]
  refused: dict[str, str]
  criterion: str
  chosen: str
  reason: str


def rank(candidates: Sequence[Candidate], criterion: str = '') -> Ranking:
  """Ranks candidates by each criterion and chooses one.

  Those whose mean prediction lies on few classes are refused: entropy is best,
  and density high, where one class is given for everything. So are those with
  predictions that are not finite. Where three or more are left and their
  predictions are known, they are ranked by `agreement.agreements` too. Equal
  scores keep the order of the candidates.

  Args:
    candidates: for one target.
    criterion: what chooses; by default the first of `DEFAULTS`, and after
      these of `CRITERIA`, that is known of all candidates that are left.

  Raises:
    UserError: there is none, two have one name, predictions are for different
      examples or classes, or the criterion is not known of all.
  """
  _check(candidates)
  refused = {c.name: why for c in candidates if (why := _refuse(c))}
  left = [c for c in candidates if c.name not in refused]
  scores = _collect_scores(left)
  orders = {
    name: tuple(sorted(known, key=lambda c: badness(name, known[c])))
    for name, known in scores.items()
  }
  if not left:
    reason = 'All candidates are refused.'
    return Ranking(orders, scores, refused, criterion, '', reason)
  complete = [name for name in scores if len(scores[name]) == len(left)]
  criterion = _find_criterion(criterion, complete, left)
  chosen = orders[criterion][0]
  reason = _explain(criterion, chosen, scores[criterion], len(refused))
  return Ranking(orders, scores, refused, criterion, chosen, reason)


def badness(criterion: str, score: float) -> float:
  """Returns a number that is smallest for the best score of a criterion."""
  return -score if is_higher_better(criterion) else score


def is_higher_better(criterion: str) -> bool:
  """Says whether a criterion prefers the largest score."""
  if criterion in (AGREEMENT, LEFT_OUT):
    return True
  return CRITERIA[criterion].higher_is_better


def _check(candidates: Sequence[Candidate]) -> None:
  if not candidates:
    raise UserError('There is no candidate to choose from.')
  names = [c.name for c in candidates]
  if len(set(names)) < len(names):
    raise UserError(f'Candidates must have different names, not {names}.')
  shapes = {
    c.probabilities.shape: c.name
    for c in candidates
    if c.probabilities is not None
  }
  if len(shapes) > 1:
    described = ', '.join(f'{name}: {shape}' for shape, name in shapes.items())
    raise UserError(
      'Candidates must predict the same examples and classes; the shapes of '
      f'their predictions differ ({described}).'
    )


def _refuse(candidate: Candidate) -> str:
  """Returns why a candidate cannot be chosen; '' where it can."""
  effective, classes = candidate.effective_classes, candidate.classes
  most = classes
  if candidate.probabilities is not None:
    try:
      effective = certainty.effective_classes(candidate.probabilities)
    except ValueError as error:
      return f'its predictions cannot be judged: {error}'
    classes = candidate.probabilities.shape[1]
    most = min(candidate.probabilities.shape)  # of few examples, their number
  if effective is None or not certainty.is_few(effective, most):
    return ''
  return (
    f'its mean prediction lies on {effective:.1f} effective classes of '
    f'{classes}: it has collapsed.'
  )


def _collect_scores(
  candidates: Sequence[Candidate],
) -> dict[str, dict[str, float]]:
  """Returns the finite scores by criterion and name; agreement first."""
  found = {
    name: {
      c.name: c.scores[name]
      for c in candidates
      if math.isfinite(c.scores.get(name, math.nan))
    }
    for name in (LEFT_OUT, *CRITERIA)
  }
  known = [c.probabilities for c in candidates if c.probabilities is not None]
  if len(known) == len(candidates) > 2:
    shares = agreements(known)
    named = {c.name: s for c, s in zip(candidates, shares, strict=True)}
    found = {AGREEMENT: named} | found
  return {name: scores for name, scores in found.items() if scores}


def _find_criterion(
  asked: str, complete: Sequence[str], left: Sequence[Candidate]
) -> str:
  """Returns the criterion that chooses; it must be known of all candidates."""
  if asked:
    check_criterion(asked)
  options = [asked] if asked else [*DEFAULTS, *CRITERIA]
  for name in options:
    if name in complete:
      return name
  known = ', '.join(complete) or 'none'
  if asked == AGREEMENT and len(left) < 3:
    raise UserError(
      f'{AGREEMENT} needs three candidates that have not collapsed, and there '
      f'are {len(left)}; known of all are: {known}.'
    )
  what = f"The criterion '{asked}'" if asked else 'No criterion'
  lacking = 'is not' if asked else 'is'
  raise UserError(
    f'{what} {lacking} known of all of {", ".join(c.name for c in left)}; '
    f'known of all are: {known}.'
  )


def check_criterion(name: str) -> None:
  """Refuses what names no criterion."""
  allowed = [AGREEMENT, LEFT_OUT, *CRITERIA]
  if name not in allowed:
    raise UserError(
      f"There is no criterion '{name}'; it must be one of {', '.join(allowed)}."
    )


def _explain(
  criterion: str, chosen: str, scores: Mapping[str, float], refused: int
) -> str:
  which = 'largest' if is_higher_better(criterion) else 'smallest'
  if len(scores) == 1:
    text = f'{chosen} is the only candidate'
    return f'{text} that is not refused.' if refused else f'{text}.'
  ordered = sorted(scores.values(), key=lambda s: badness(criterion, s))
  return (
    f'{chosen} has the {which} {criterion} of {len(scores)} candidates: '
    f'{ordered[0]:.4g}, then {ordered[1]:.4g}.'
  )
