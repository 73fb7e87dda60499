"""How strong the learned views have become, operation by operation."""

import numpy as np
from matplotlib.figure import Figure

from moda_jax.data.learned import MAGNITUDES, to_probabilities
from moda_jax.data.operations import OPERATIONS
from moda_jax.data.options import ViewOptions
from moda_jax.objectives import metrics as names
from moda_jax.report import curves
from moda_jax.report.html import WIDTH, escape, figure, grid
from moda_jax.report.palette import SEQUENTIAL, style
from moda_jax.report.runs import ReportedRun

Table = dict[str, np.ndarray]  # by operation, how often each magnitude is drawn


def show_magnitudes(run: ReportedRun) -> str:
  """Returns the section of a run's learned views; '' where none are learned."""
  if not run.metrics or names.VIEW_MAGNITUDE not in run.metrics[-1]:
    return ''
  label = f'mean magnitude, of {MAGNITUDES[-1]}'
  drawn = curves.draw_metric(label, run.metrics, names.VIEW_MAGNITUDE, style(0))
  note = 'Of all operations; it changes at the end of an epoch.'
  shown = [figure(drawn, 'Mean magnitude', note)]
  table = find_table(run)
  if table:
    note = (
      'How often each magnitude is drawn, the darker the more often, and the '
      'mean magnitude on the right. At 0 a picture stays as it is.'
    )
    shown.append(figure(draw_table(table), 'Magnitude of each operation', note))
  text = (
    'An operation is made stronger while pictures of the sources are still '
    'recognised under it.'
  )
  return f'<h2>Learned views</h2><p class="note">{escape(text)}</p>' + grid(
    shown
  )


def find_table(run: ReportedRun) -> Table:
  """Returns what magnitudes are drawn by; empty while training goes on.

  Of several seeds it is the mean. The strongest operation comes first.
  """
  if run.experiment is None or run.state is None:
    return {}
  learning, weights = run.experiment.learning, run.state.view_weights
  if learning is None or weights is None:
    return {}
  return make_table(np.asarray(weights['weight']), learning.options)


def make_table(weights: np.ndarray, options: ViewOptions) -> Table:
  """Returns the table of weights `[…, 15, magnitudes]`, see `find_table`."""
  p = to_probabilities(np.asarray(weights, np.float64), options)
  p = p.reshape(-1, *p.shape[-2:]).mean(axis=0)
  table = {
    name: p[i]
    for i, name in enumerate(OPERATIONS)
    if name not in options.randaugment_exclude
  }
  order = sorted(table, key=lambda name: -mean_magnitude(table[name]))
  return {name: table[name] for name in order}


def mean_magnitude(shares: np.ndarray) -> float:
  """Returns the mean of magnitudes that are drawn in these shares."""
  return float(shares @ np.array(MAGNITUDES))


def draw_table(table: Table) -> Figure:
  """Draws a row for each operation, with its mean magnitude behind."""
  height = 0.9 + 0.24 * len(table)
  drawn = Figure(figsize=(WIDTH, height), layout='constrained')
  axes = drawn.subplots()
  shares = np.stack(list(table.values()))
  axes.imshow(shares, cmap=SEQUENTIAL, vmin=0, aspect='auto')
  axes.set_xticks(range(len(MAGNITUDES)), [str(m) for m in MAGNITUDES])
  axes.set_yticks(range(len(table)), list(table), fontsize=9)
  axes.set_xlabel('magnitude')
  for place, own in enumerate(table.values()):
    axes.text(
      len(MAGNITUDES) - 0.35,
      place,
      f'{mean_magnitude(own):.1f}',
      va='center',
      fontsize=9,
    )
  return drawn
