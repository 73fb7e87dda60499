"""The page of a run: what it was, how it went, what it saw."""

import html
import json
import os
import pathlib
from collections.abc import Callable

import ml_collections
import numpy as np

from moda_jax.report import plots
from moda_jax.training.loop import Outcome
from moda_jax.training.progress import format_accuracy
from moda_jax.training.run_folder import read_metrics

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem;
       margin: 2rem auto; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; } td, th { padding: .2rem 1rem .2rem 0;
        text-align: left; border-bottom: 1px solid #ddd; }
img { max-width: 100%; } pre { background: #f6f6f6; padding: 1rem;
      overflow-x: auto; font-size: 13px; } .note { color: #666; }
"""
_SAMPLES = 12


def write_run_page(
  outcome: Outcome, workdir: str | os.PathLike
) -> pathlib.Path:
  """Writes `report/index.html` into the run's folder; returns its path."""
  name = outcome.experiment.config.objective.method
  folder = pathlib.Path(workdir)
  return write_page(folder / 'report', {name: (outcome, folder)})


def write_page(
  folder: pathlib.Path,
  runs: dict[str, tuple[Outcome, pathlib.Path]],
) -> pathlib.Path:
  """Writes the page of one run or of several to compare.

  Args:
    folder: gets `index.html` and the pictures, made if missing.
    runs: name to outcome and workdir; the last one's source weights, losses
      and views are shown.
  """
  folder.mkdir(parents=True, exist_ok=True)
  metrics = {name: read_metrics(workdir) for name, (_, workdir) in runs.items()}
  main, outcome = list(runs)[-1], list(runs.values())[-1][0]
  config = outcome.experiment.config
  sections = [
    _results(runs, config.data.target),
  ]
  if outcome.accuracy is not None:
    title = 'Target accuracy'
    sections.append(_figure(folder, title, plots.plot_accuracy, metrics))
  for label, name in outcome.experiment.method.curves.items():
    title = f'{label[0].upper()}{label[1:]} of {main}'
    shares = plots.Shares(label, name, metrics[main])
    sections.append(_figure(folder, title, plots.plot_shares, shares))
  title = f'Losses of {main}'
  sections.append(_figure(folder, title, plots.plot_losses, metrics[main]))
  samples = collect_samples(outcome)
  if samples is not None:
    title = 'Views of the target'
    sections.append(_figure(folder, title, plots.plot_views, samples))
    sections.append(_explain_views(samples))
  sections.append(_data(outcome))
  sections.append(_config(config))
  path = folder / 'index.html'
  path.write_text(
    _document(f'{config.experiment}: {config.data.target}', sections)
  )
  return path


def collect_samples(outcome: Outcome) -> plots.ViewSamples | None:
  """Returns target inputs as the method saw them; None if they are not images.

  Of several seeds it is the first one's batch, with the average of what all of
  them predict.
  """
  experiment = outcome.experiment
  target = experiment.make_batch(0)['target']
  spec = experiment.method.batch_spec
  views = {k: target[k][:_SAMPLES] for k in spec.target_views}
  views = {k: x for k, x in views.items() if x.ndim == 4}
  if not views:
    return None
  probabilities = experiment.predict(outcome.state, views['weak'])
  classes = experiment.domains.target.classes
  return plots.ViewSamples(
    views=views,
    pseudo_labels=[classes[i] for i in np.argmax(probabilities, axis=-1)],
    confidences=np.max(probabilities, axis=-1),
    threshold=experiment.method.confidence_threshold,
  )


def _results(runs: dict[str, tuple[Outcome, pathlib.Path]], target: str) -> str:
  rows = ''.join(
    _row(
      name,
      o.accuracy,
      o.best_accuracy,
      o.experiment.method.caution,
      o.deviation,
    )
    + ''.join(_row(f'{name} from {k}', v) for k, v in o.by_predictor.items())
    + ''.join(_row(f'{name}, seed {k}', v) for k, v in o.by_seed.items())
    for name, (o, _) in runs.items()
  )
  return (
    f'<h2>Accuracy on the target {html.escape(target)}</h2><table>'
    '<tr><th>method</th><th>last step</th><th class="note">best over time '
    f'(chosen with target labels)</th><th></th></tr>{rows}</table>'
  )


def _row(
  name: str,
  accuracy: float | None,
  best: float | None = None,
  caution: str = '',
  deviation: float | None = None,
) -> str:
  over_time = '' if best is None else f'{100 * best:.2f} %'
  shown = 'no labels'
  if accuracy is not None:
    shown = format_accuracy(accuracy, deviation)
  return (
    f'<tr><td>{html.escape(name)}</td><td>{shown}</td>'
    f'<td class="note">{over_time}</td><td>{caution}</td></tr>'
  )


def _figure(
  folder: pathlib.Path, title: str, plot: Callable[..., None], data: object
) -> str:
  name = plot.__name__.removeprefix('plot_') + '.png'
  plot(data, folder / name)
  text = html.escape(title)
  return f'<h2>{text}</h2><img src="{name}" alt="{text}">'


def _explain_views(samples: plots.ViewSamples) -> str:
  text = 'Above each sample: the class given to its weak view, and how surely.'
  if samples.threshold is not None:
    text += (
      f' Green: above τ = {samples.threshold:g}, so the strong view is trained '
      'towards it.'
    )
  return f'<p class="note">{text}</p>'


def _data(outcome: Outcome) -> str:
  domains = outcome.experiment.domains
  rows = [('source', d) for d in domains.sources]
  labelled = outcome.experiment.method.batch_spec.target_labels
  role = 'target, with labels' if labelled else 'target, without labels'
  rows += [(role, domains.target), ('test', domains.test)]
  cells = ''.join(
    f'<tr><td>{role}</td><td>{html.escape(d.name)}</td>'
    f'<td>{html.escape(d.origin)}</td><td>{d.size}</td></tr>'
    for role, d in rows
  )
  return (
    '<h2>Data</h2><table><tr><th>role</th><th>domain</th><th>data set</th>'
    f'<th>examples</th></tr>{cells}</table>'
  )


def _config(config: ml_collections.ConfigDict) -> str:
  text = json.dumps(json.loads(config.to_json()), indent=2, ensure_ascii=False)
  return f'<h2>Config</h2><pre>{html.escape(text)}</pre>'


def _document(title: str, sections: list[str]) -> str:
  title = html.escape(title)
  return (
    '<!doctype html><html lang="en"><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width">'
    f'<title>{title}</title><style>{_STYLE}</style><h1>{title}</h1>'
    + '\n'.join(sections)
    + '</html>\n'
  )
