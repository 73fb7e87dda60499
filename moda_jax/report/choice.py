"""The choice among finished runs, without labels of the target, in words."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from moda_jax.report.candidates import Looked
from moda_jax.selection.agreement import AGREEMENT
from moda_jax.selection.ranking import Candidate, Ranking, rank
from moda_jax.training.same_budget import BASELINE

CRITERIA_IN_WORDS = {
  AGREEMENT: 'the share of answers that are those of the mean prediction of '
  'all runs that are not refused',
  'entropy': 'how unsure the answers are on average, which several methods '
  'are trained to lower',
  'information': 'how sure the answers are, and how many classes they use',
  'nuclear_norm': 'how sure the answers are, and how many classes they use, by '
  'the singular values of the predictions',
  'density': 'whether predictions lie in tight groups',
  'source_accuracy': 'accuracy on source examples kept out of training',
  'weighted_accuracy': 'accuracy on source examples kept out of training, of '
  'which those like the target count more',
  'dev_risk': 'the share of wrong answers on source examples kept out of '
  'training, of which those like the target count more, corrected by how these '
  'weights vary (DEV)',
}

_SMALL = 0.05  # share of answers, of which little depends


class Choice(NamedTuple):
  """A choice and its reasons.

  Attributes:
    name: of the run that is chosen; '' where all are refused.
    verdict: one sentence that says so.
    reasons: further ones.
    oracle: a sentence that reads the target's labels; '' without any.
    ranking: what the criteria say.
    refused: why a run cannot be chosen, by name.
  """

  name: str
  verdict: str
  reasons: tuple[str, ...]
  oracle: str
  ranking: Ranking
  refused: dict[str, str]


def choose(
  looked: Sequence[Looked], failed: Mapping[str, str] | None = None
) -> Choice:
  """Chooses by held-out labelled examples of the target, or without any.

  Args:
    looked: the finished runs.
    failed: why others have not finished, by name.
  """
  ranking = rank(
    [Candidate(run.name, run.scores, run.judged) for run in looked]
  )
  refused = ranking.refused | dict(failed or {})
  left = [run for run in looked if run.name not in refused]
  name, how = ranking.chosen, _explain(ranking)
  if left and left[0].labelled[1]:
    name, how = _choose_by_labels(left, ranking)
  reasons = [how, *_compare_with_baseline(name, ranking)]
  reasons += _compare_answers(name, looked)
  reasons += [f'{run} is refused: {why}' for run, why in refused.items()]
  return Choice(
    name=name,
    verdict=_judge(name, len(left), refused),
    reasons=tuple(reasons),
    oracle=_consult_oracle(name, looked),
    ranking=ranking,
    refused=refused,
  )


def _explain(ranking: Ranking) -> str:
  """Says what decides, and what that is."""
  words = CRITERIA_IN_WORDS.get(ranking.criterion)
  if not words:
    return ranking.reason
  return f'{ranking.reason} {ranking.criterion.capitalize()} is {words}.'


def _choose_by_labels(
  left: Sequence[Looked], ranking: Ranking
) -> tuple[str, str]:
  """Returns the run that is right most often, and why; criteria break ties."""
  order = ranking.orders[ranking.criterion]
  right = {run.name: run.labelled[0] for run in left}
  best = max(right.values())
  tied = [name for name in order if right[name] == best]
  count = left[0].labelled[1]
  counted = ', '.join(f'{name} {n}' for name, n in right.items())
  text = (
    f'Labels of the target were used to choose: of {count} labelled examples '
    f'held out of training, right are: {counted}.'
  )
  if len(tied) > 1:
    text += f' Among equals {ranking.criterion} decides.'
  return tied[0], text


def _judge(name: str, left: int, refused: Mapping[str, str]) -> str:
  """Says what is chosen among so many runs that are not refused."""
  if not name:
    return (
      'No run can be recommended: all predictions lie on few classes. Train '
      'longer, or see whether the sources have what the target shows.'
    )
  if name == BASELINE and left == 1:
    return (
      f'{BASELINE}, which is trained on the sources alone, is chosen: all '
      'adapted runs are refused, so whether adaptation helps is not known.'
    )
  if BASELINE in refused:
    return f'{name} is chosen; {BASELINE}, which does not adapt, is refused.'
  if name == BASELINE:
    return (
      'Adaptation does not help here: no adapted run is preferred to '
      f'{BASELINE}, which is trained on the sources alone. It is chosen.'
    )
  return f'{name} is chosen, before {BASELINE}, which does not adapt.'


def _compare_with_baseline(name: str, ranking: Ranking) -> list[str]:
  """Says which criteria put the chosen run before the baseline."""
  if not name:
    return []
  if name == BASELINE:
    return _name_dissenters(ranking)
  before: list[str] = []
  behind: list[str] = []
  for criterion, order in ranking.orders.items():
    if name in order and BASELINE in order:
      is_before = order.index(name) < order.index(BASELINE)
      (before if is_before else behind).append(criterion)
  if not before + behind:
    return []
  count = len(before) + len(behind)
  if not behind:
    return [f'All {count} criteria put it before {BASELINE}.']
  text = (
    f'Of {count} criteria {len(before)} put it before {BASELINE}; not so '
    f'{", ".join(behind)}.'
  )
  if len(behind) > len(before):
    text += ' They are at odds: mind the choice, or label a few pictures.'
  return [text]


def _compare_answers(name: str, looked: Sequence[Looked]) -> list[str]:
  """Says on how many examples the chosen run differs from the baseline."""
  answers = {run.name: run.judged.argmax(axis=1) for run in looked}
  if name in ('', BASELINE) or BASELINE not in answers:
    return []
  count = len(answers[name])
  differing = int((answers[name] != answers[BASELINE]).sum())
  text = (
    f'It and {BASELINE} differ in {differing:,} of {count:,} answers on the '
    'target'
  )
  if differing < _SMALL * count:
    return [f'{text}: whichever is right, little depends on the choice.']
  return [f'{text}.']


def _name_dissenters(ranking: Ranking) -> list[str]:
  """Says which criteria would have preferred another run than the baseline."""
  others = [
    f'{criterion} ({order[0]})'
    for criterion, order in ranking.orders.items()
    if order and order[0] != BASELINE
  ]
  if all(len(order) < 2 for order in ranking.orders.values()):
    return []
  if not others:
    return ['All criteria agree.']
  return [f'Another run would be preferred by {", ".join(others)}.']


def _consult_oracle(name: str, looked: Sequence[Looked]) -> str:
  """Says what the choice has cost, where the target's labels are known."""
  known = {run.name: run.accuracy for run in looked if run.accuracy is not None}
  if name not in known:
    return ''
  best = max(known, key=lambda run: known[run])
  own, most = 100 * known[name], 100 * known[best]
  text = f'Oracle: the choice reaches {own:.1f} % of the test examples'
  if BASELINE in known and name != BASELINE:
    text += f', {BASELINE} {100 * known[BASELINE]:.1f} %'
  if most > own:
    return (
      f'{text}; the best run would have been {best} with {most:.1f} %, so the '
      f'choice loses {most - own:.1f} points.'
    )
  return f'{text}; no run is better.'
