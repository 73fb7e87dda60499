"""The sections of the page that concern one run."""

import json
from collections.abc import Mapping, Sequence

import numpy as np

from moda_jax.data.domains import labelled_name
from moda_jax.objectives import find_method
from moda_jax.objectives import metrics as names
from moda_jax.report import (
  answers,
  comparison,
  criteria,
  curves,
  magnitudes,
  maps,
  pictures,
)
from moda_jax.report.examination import Examination, examine
from moda_jax.report.html import (
  bar,
  escape,
  figure,
  grid,
  table,
)
from moda_jax.report.palette import Style, class_styles, domain_styles
from moda_jax.report.runs import ReportedRun
from moda_jax.training.progress import format_accuracy


def find_title(shown: Sequence[ReportedRun]) -> str:
  """Returns the title of the page, as text."""
  config = shown[-1].config
  what = config.experiment or 'run'
  methods = ' and '.join(dict.fromkeys(run.name for run in shown))
  if len(shown) > 3:
    methods = f'{len(shown)} runs'
  return f'{methods} on {what}, target {config.data.target}'


def show_title(shown: Sequence[ReportedRun]) -> str:
  """Returns title, state and the figure that matters most."""
  run = shown[-1]
  accuracy = comparison.last_accuracy(run)
  total = run.experiment.total_steps if run.experiment else run.config.run.steps
  ended = f'step {run.step:,}' + (f' of {total:,}' if total else '')
  sources = ', '.join(run.config.data.sources)
  parts = [f'<h1>{escape(find_title(shown))}</h1>']
  if accuracy is not None:
    parts.append(
      f'<p><span class="big">{format_accuracy(accuracy)}</span> of the '
      f"target's test examples are classified correctly by "
      f'{escape(run.name)}.</p>'
    )
  parts.append(
    f'<p class="note">{escape(run.name)}, from {escape(sources)} to '
    f'{escape(run.config.data.target)}, {ended}, seed {run.config.run.seed}'
    + (f' and {n - 1} more' if (n := run.config.run.seeds) > 1 else '')
    + '</p>'
  )
  return '\n'.join(parts)


def show_run(run: ReportedRun) -> list[str]:
  """Returns all sections of one run."""
  data = run.config.data
  styles = domain_styles([*data.sources, data.target])
  parts = []
  if run.missing:
    parts.append(f'<p class="warning">{escape(run.missing)}</p>')
  seen = None
  if run.experiment is not None and run.state is not None:
    seen = examine(run.experiment, run.state)
  parts.append(_show_data(run, styles, seen))
  parts.append(_show_curves(run, styles))
  parts.append(criteria.show_criteria(run))
  parts.append(magnitudes.show_magnitudes(run))
  if seen is not None:
    parts += [
      _show_answers(seen),
      _show_views(run),
      _show_maps(seen, styles),
      _show_proportions(seen, styles),
    ]
  parts.append(_show_config(run))
  return parts


def _show_data(
  run: ReportedRun, styles: Mapping[str, Style], seen: Examination | None
) -> str:
  """Returns what was trained on what, with the accuracy of each domain."""
  data = run.config.data
  labelled = find_method(run.config.objective).batch_spec.target_labels
  role = 'target, with labels' if labelled else 'target, without labels'
  rows = []
  extra = labelled_name(data.target) if data.get('target_labels') else ''
  roles = {data.target: role, extra: 'source: labels of the target'}
  for name in (*data.sources, data.target):
    shown = roles.get(name, 'source')
    dot = bar(0.12, styles[name].colour)
    origin = escape(run.origins.get(name, ''))
    rows.append([f'{dot}{escape(name)}', shown, origin])
  text = '<h2>What was trained on what</h2>'
  text += table(['domain', 'role', 'data set'], rows)
  if extra:
    text += (
      '<p class="warning">Labels of the target are trained on, of the few '
      'examples in target_labels; these do not count in its accuracy.</p>'
    )
  return text + (_show_accuracies(styles, seen) if seen else '')


def _show_accuracies(styles: Mapping[str, Style], seen: Examination) -> str:
  rows = []
  for predicted in (*seen.sources, seen.test):
    if predicted.accuracy is None:
      continue
    name, count = predicted.domain.name, len(predicted.probabilities)
    kind = 'target, test' if predicted is seen.test else 'source, training'
    part = f' of {predicted.whole:,}' if count < predicted.whole else ''
    shown = bar(predicted.accuracy, styles[name].colour)
    rows.append(
      [
        escape(name),
        f'<span class="whole">{shown}{100 * predicted.accuracy:.1f} %</span>',
        f'{kind}, {count:,}{part} examples',
      ]
    )
  return '<h2>Accuracy per domain</h2>' + table(
    ['domain', 'accuracy', 'on'], rows
  )


def _show_curves(run: ReportedRun, styles: Mapping[str, Style]) -> str:
  if not run.metrics:
    return ''
  lines, last, shown = run.metrics, run.metrics[-1], []
  # The method's own curves, by what is logged: its class need not be made.
  if names.select(last, names.ALPHA):
    drawn = curves.draw_shares('source weight α', lines, names.ALPHA, styles)
    note = 'How much each source counts.'
    shown.append(figure(drawn, 'Source weight α', note))
  for confident in find_method(run.config.objective).confident:
    if confident.metric in last:
      value = run.config.objective.get(confident.option)
      drawn = curves.draw_confident(lines, confident, value)
      shown.append(figure(drawn, confident.title, confident.note))
  target = run.config.data.target
  for title, drawn in curves.draw_losses(lines, target, styles).items():
    shown.append(figure(drawn, title))
  return '<h2>Over time</h2>' + grid(shown)


def _show_answers(seen: Examination) -> str:
  test, parts = seen.test, []
  part = ''
  if len(test.probabilities) < test.whole:
    part = (
      f' Of {test.whole:,} examples, {len(test.probabilities):,} at random.'
    )
  if test.domain.labels is not None:
    drawn = answers.draw_confusions(test)
    found = answers.find_confusions(test)
    note = f'Percent of each class.{part}'
    parts.append('<h2>Confusions</h2>')
    listed = ''.join(f'<li>{escape(line)}</li>' for line in found)
    parts.append(
      grid(
        [
          figure(drawn, 'Confusion matrix', note),
          f'<div><p>Most common:</p><ul>{listed}</ul></div>' if found else '',
        ]
      )
    )
    mistakes = pictures.show_answers(test, pictures.find_mistakes(test))
    if mistakes:
      parts.append(
        '<h2>Most confident mistakes</h2><p class="note">In bold the answer '
        f'with its probability.</p>{mistakes}'
      )
  unsure = pictures.show_answers(test, pictures.find_unsure(test))
  if unsure:
    parts.append(f'<h2>Least confident answers</h2>{unsure}')
  return '\n'.join(parts)


def _show_views(run: ReportedRun) -> str:
  assert run.experiment is not None  # see `show_run`
  assert run.state is not None
  samples = pictures.collect_views(run.experiment, run.state)
  if samples is None:
    return ''
  return (
    '<h2>Views of the target</h2>'
    f'<p class="note">{escape(pictures.explain_views(samples))}</p>'
    + pictures.show_views(samples)
  )


def _show_maps(seen: Examination, styles: Mapping[str, Style]) -> str:
  features = np.concatenate(list(seen.features.values()))
  domains = [d for d, x in seen.features.items() for _ in x]
  known = {n: d for n, d in seen.mapped.items() if d.labels is not None}
  classes = seen.test.domain.classes
  labelled = np.isin(domains, list(known))
  by_class = [classes[i] for d in known.values() for i in d.known_labels]
  shown = []
  for kind in ('PCA', 't-SNE') if maps.has_tsne() else ('PCA',):
    points = maps.project(features, kind)
    drawn = maps.draw_map(points, domains, styles)
    shown.append(figure(drawn, f'{kind}, by domain'))
    own = class_styles(classes)
    drawn = maps.draw_map(points[labelled], by_class, own)
    shown.append(figure(drawn, f'{kind}, by class'))
  text = (
    f'{len(features):,} training examples. Where adaptation works, domains mix '
    'and classes stay apart.'
  )
  if len(known) < len(seen.mapped):
    text += ' By class: those with labels.'
  if not maps.has_tsne():
    text += " t-SNE needs scikit-learn: pip install 'moda_jax[report]'."
  return (
    f'<h2>Maps of the features</h2><p class="note">{escape(text)}</p>'
    + grid(shown)
  )


def _show_proportions(seen: Examination, styles: Mapping[str, Style]) -> str:
  drawn = answers.draw_proportions(seen, styles)
  return (
    '<h2>Class proportions</h2><p class="note">The estimate is the mean of the '
    "probabilities over the target's training examples. Where it is far from "
    'the sources, either the target differs or the classifier is drawn to a '
    'class.</p>' + grid([figure(drawn, 'Share of each class')])
  )


def _show_config(run: ReportedRun) -> str:
  text = json.dumps(
    json.loads(run.config.to_json()), indent=2, ensure_ascii=False
  )
  command = run.command or 'not recorded: started from Python'
  start = f'<p>Started from {escape(run.start)}.</p>' if run.start else ''
  return (
    f'<h2>Command and config</h2><pre>{escape(command)}</pre>{start}'
    '<details><summary>The whole config, as in config.json</summary>'
    f'<pre>{escape(text)}</pre></details>'
  )
