"""The page of a comparison: which method, which source, what to label."""

import pathlib
from collections.abc import Sequence

from moda_jax.data.domains import labelled_name
from moda_jax.files.atomic import write_whole
from moda_jax.report import answers, html, pictures
from moda_jax.report.candidates import Looked
from moda_jax.report.choice import CRITERIA_IN_WORDS, Choice
from moda_jax.report.compared import Compared, find_voting
from moda_jax.report.html import bar, escape, table
from moda_jax.report.palette import domain_styles
from moda_jax.report.worth import Worth
from moda_jax.selection.ranking import badness, is_higher_better
from moda_jax.training.same_budget import BASELINE

_SHOWN = 24  # examples to label; the file has more
_NAMED = 10  # of those that are not pictures
_MOST = 2.0  # of the distance


def write_page(compared: Compared, folder: pathlib.Path) -> pathlib.Path:
  """Writes `index.html` into the folder; returns its path."""
  target = compared.config.data.target
  name = compared.choice.name or 'No run'
  sections = [
    _show_choice(compared),
    _show_criteria(compared),
    _show_sources(compared),
    _show_left_out(compared),
    _show_classes(compared),
    _show_to_label(compared),
    _show_runs(compared),
  ]
  path = folder / 'index.html'
  with write_whole(path) as file:
    file.write(html.document(f'{name} for {target}', sections))
  return path


def _show_choice(compared: Compared) -> str:
  """Returns title, verdict and reasons."""
  choice, config = compared.choice, compared.config
  adapts = choice.name != BASELINE
  kind = 'verdict' if choice.name and adapts else 'warning'
  sources = ', '.join(s.source for s in compared.worth)
  parts = [
    f'<h1>Which method for {escape(config.data.target)}?</h1>',
    f'<p class="big">{escape(choice.name or "none")}</p>',
    f'<p class="{kind}">{escape(choice.verdict)}</p>',
    *(f'<p>{escape(reason)}</p>' for reason in choice.reasons),
  ]
  if compared.labels_used:
    parts.append(
      f'<p class="warning">{compared.labels_used} labels of the target were '
      f'used: half of them train every run, as the source '
      f'{escape(labelled_name(config.data.target))}, and half choose. None of '
      'these examples counts in the accuracy.</p>'
    )
  if choice.oracle:
    parts.append(
      f'<p class="note">{escape(choice.oracle)} The criteria do not read '
      'these labels.</p>'
    )
  parts.append(
    f'<p class="note">From {escape(sources)}; {len(compared.looked)} runs of '
    f'{config.run.steps:,} steps each, seed {config.run.seed}. One seed: '
    'another one can differ.</p>'
  )
  return '\n'.join(parts)


def _show_criteria(compared: Compared) -> str:
  names = compared.choice.ranking.orders
  explained = ''.join(
    f'<li><b>{escape(n)}</b>: {CRITERIA_IN_WORDS.get(n, "")}; '
    f'{"high" if is_higher_better(n) else "low"} is good</li>'
    for n in names
  )
  deciding = compared.choice.ranking.criterion
  order = f'In order of {escape(deciding)}; in' if deciding else 'In'
  oracle = ''
  if compared.choice.oracle:
    oracle = ' The oracle is accuracy by the labels of the target.'
  return (
    f'<h2>Every method by every criterion</h2><p class="note">{order} each '
    f'column the best is bold.{oracle}</p>'
    + _show_scores(compared.looked, compared.choice)
    + f'<details><summary>What the criteria are</summary><ul>{explained}</ul>'
    '</details>'
  )


def _show_scores(looked: Sequence[Looked], choice: Choice) -> str:
  """Returns a table of runs: criteria, labelled examples, oracle."""
  ranking = choice.ranking
  order = list(ranking.orders.get(ranking.criterion, ()))
  ranked = sorted(
    (run for run in looked if run.name in order),
    key=lambda run: order.index(run.name),
  )
  ranked += [run for run in looked if run.name not in order]
  header = ['run', *(f'{n} {_arrow(n)}' for n in ranking.orders)]
  has_labelled = any(run.labelled[1] for run in looked)
  has_oracle = any(run.accuracy is not None for run in looked)
  header += ['held-out target labels'] * has_labelled
  header += ['<i>oracle</i>'] * has_oracle
  rows = []
  for run in ranked:
    row = [_mark(run, choice)]
    for name, known in ranking.scores.items():
      score = known.get(run.name, run.scores.get(name))
      is_best = ranking.orders[name][:1] == (run.name,)
      row.append(_emphasise(_format(score), is_best, run.name in order))
    if has_labelled:
      row.append(f'{run.labelled[0]} of {run.labelled[1]}')
    if has_oracle:
      shown = '–' if run.accuracy is None else f'{100 * run.accuracy:.1f} %'
      row.append(f'<i class="whole">{shown}</i>')
    rows.append(row)
  return table(header, rows)


def _arrow(criterion: str) -> str:
  return '↑' if badness(criterion, 1.0) < 0 else '↓'


def _mark(run: Looked, choice: Choice) -> str:
  name = escape(run.name)
  if run.name in choice.refused:
    return f'{name} <span class="note">refused</span>'
  return f'<b>{name}</b> ✓' if run.name == choice.name else name


def _emphasise(text: str, is_best: bool, is_ranked: bool) -> str:
  if not is_ranked:
    return f'<span class="note">{text}</span>'
  return f'<b>{text}</b>' if is_best else text


def _format(value: float | None) -> str:
  return '–' if value is None else f'{value:.3f}'


def _show_sources(compared: Compared) -> str:
  styles = domain_styles([*compared.shares, compared.config.data.target])
  has_alpha = any(worth.alpha is not None for worth in compared.worth)
  adapted = compared.choice.name not in ('', BASELINE)
  header = ['source']
  header += [f'α in {escape(compared.weighted)}'] * has_alpha
  header += [f'distance, {BASELINE}']
  header += [f'distance, {escape(compared.choice.name)}'] * adapted
  rows = []
  for worth in compared.worth:
    colour = styles[worth.source].colour
    row = [f'{bar(0.12, colour)}{escape(worth.source)}']
    if has_alpha:
      row.append(_draw_share(worth.alpha, 1.0, colour))
    row.append(_draw_share(worth.before, _MOST, colour))
    if adapted:
      row.append(_draw_share(worth.after, _MOST, colour))
    rows.append(row)
  return (
    '<h2>What each source is worth</h2>'
    + table(header, rows)
    + f'<p class="note">{escape(_explain_sources(compared, has_alpha))}</p>'
  )


def _explain_sources(compared: Compared, has_alpha: bool) -> str:
  text = (
    'The distance to the target says how well a linear classifier tells the '
    "two apart by the run's features: 0 where it cannot, 2 where it never errs."
  )
  if has_alpha:
    text = f'α is the weight that training gave to the source. {text}'
  measured = [w for w in compared.worth if w.before is not None]
  if len(measured) > 1:
    nearest = min(measured, key=_distance)
    text += f' Nearest without adaptation: {nearest.source}.'
  return text


def _distance(worth: Worth) -> float:
  return _MOST if worth.before is None else worth.before


def _draw_share(value: float | None, most: float, colour: str) -> str:
  if value is None:
    return '–'
  drawn = bar(value / most, colour)
  return f'<span class="whole">{drawn}{value:.2f}</span>'


def _show_left_out(compared: Compared) -> str:
  if compared.left_out is None:
    return ''
  looked, choice = compared.left_out
  order = choice.ranking.orders.get(choice.ranking.criterion, ())
  whole = looked[0].name
  better = list(order[: order.index(whole)]) if whole in order else []
  text = f'By {choice.ranking.criterion} no source is better left out.'
  if better:
    text = (
      f'By {choice.ranking.criterion} these are better than {whole}: '
      f'{", ".join(better)}.'
    )
  return (
    '<h2>Each source left out</h2>'
    f'<p class="verdict">{escape(text)}</p>{_show_scores(looked, choice)}'
    '<p class="note">Without criteria that read source examples: these runs '
    'have different ones.</p>'
  )


def _show_classes(compared: Compared) -> str:
  chosen = compared.chosen
  if compared.classes is None or chosen is None:
    return ''
  target = compared.sampled
  styles = domain_styles([*compared.shares, target.name])
  drawn = answers.draw_shares(compared.shares, target, compared.classes, styles)
  text = (
    f'Estimated from the predictions of {chosen.name} and its confusions on '
    f'{len(chosen.known[1])} source examples kept out of training (black-box '
    'shift estimation): right as far as a class looks alike in source and '
    'target, and rough where there are few examples of it.'
  )
  return (
    '<h2>Which classes the target has</h2>'
    f'<p class="note">{escape(text)}</p>'
    + html.grid([html.figure(drawn, 'Share of each class')])
  )


def _show_to_label(compared: Compared) -> str:
  """Returns pictures, or names, whose labels would help most."""
  voting = find_voting(compared.looked, compared.choice)
  cards, names = [], []
  for number, place in enumerate(compared.to_label[:_SHOWN], 1):
    name = compared.sampled.names[place]
    votes = ', '.join(_count_votes(compared, voting, int(place)))
    pixels = pictures.find_pixels(compared.sampled, int(place))
    shown = pathlib.PurePath(name).name
    caption = f'{number}. {escape(shown)}<br><b>{escape(votes)}</b>'
    if pixels is None:
      names.append([escape(name), escape(votes)])
    else:
      cards.append(([html.picture(pixels, name)], caption))
  shown = (
    html.gallery(cards)
    if cards
    else table(['example', 'answers'], names[:_NAMED])
  )
  text = (
    'The runs disagree most on these examples, and among equals their mean '
    'prediction is least sure; classes take turns. to_label.csv lists '
    f'{len(compared.to_label)}: write labels into its second column and give '
    'it back with target_labels=FILE and a new --workdir. Half of them then '
    'train and half choose.'
  )
  return (
    f'<h2>What to label first</h2><p class="note">{escape(text)}</p>{shown}'
  )


def _count_votes(
  compared: Compared, voting: Sequence[Looked], place: int
) -> list[str]:
  classes = compared.sampled.classes
  given = [classes[run.judged[place].argmax()] for run in voting]
  counts = {name: given.count(name) for name in dict.fromkeys(given)}
  ordered = sorted(counts, key=lambda name: -counts[name])
  return [f'{name} ×{counts[name]}' for name in ordered]


def _show_runs(compared: Compared) -> str:
  runs = [*compared.looked]
  if compared.left_out is not None:
    runs += compared.left_out[0][1:]
  listed = ''.join(
    f'<li><a href="{escape(run.workdir.name)}/report/index.html">'
    f'{escape(run.name)}</a></li>'
    for run in runs
  )
  return (
    f'<h2>The runs</h2><ul>{listed}</ul><p class="note">Beside this page: '
    'comparison.json has all figures, predictions.csv what the chosen run '
    'says of the target, to_label.csv what to label first.</p>'
  )
