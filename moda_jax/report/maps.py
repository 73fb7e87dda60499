"""Two-dimensional maps of features: PCA and t-SNE."""

import importlib.util
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from moda_jax.report.html import WIDTH
from moda_jax.report.palette import Style

_KEPT = 50  # principal components that t-SNE is given
_NAMED = 21  # more classes than these have no legend
_SHORT = 2  # letters that serve as markers
_STEPS = 500  # of t-SNE


def has_tsne() -> bool:
  """Says whether scikit-learn is installed."""
  return importlib.util.find_spec('sklearn') is not None


def project(features: np.ndarray, kind: str) -> np.ndarray:
  """Returns points `[N, 2]` for features `[N, F]`, by 'PCA' or 't-SNE'."""
  components = _principal_components(features)
  if kind == 'PCA':
    return _two_columns(components)
  import threadpoolctl
  from sklearn.manifold import TSNE

  start = _two_columns(components)
  spread = start[:, 0].std() or 1.0
  tsne = TSNE(
    perplexity=min(30, (len(features) - 1) / 3),
    init=1e-4 * start / spread,
    learning_rate='auto',
    max_iter=_STEPS,
    random_state=0,
  )
  # Threads that wait for each other take minutes where cores are shared.
  with threadpoolctl.threadpool_limits(1):
    return tsne.fit_transform(components[:, :_KEPT])


def _principal_components(features: np.ndarray) -> np.ndarray:
  centred = features.astype(np.float64) - features.mean(axis=0)
  u, s, _ = np.linalg.svd(centred, full_matrices=False)
  return u * s


def _two_columns(components: np.ndarray) -> np.ndarray:
  missing = max(0, 2 - components.shape[1])
  return np.pad(components, ((0, 0), (0, missing)))[:, :2]


def draw_map(
  points: np.ndarray, members: Sequence[str], styles: Mapping[str, Style]
) -> Figure:
  """Draws points, each in the style of what it is a member of.

  Args:
    points: `[N, 2]`.
    members: the domain or class of each point; short names, such as digits,
      are drawn in place of markers.
    styles: by domain or class, in the order of the legend.
  """
  figure = Figure(figsize=(WIDTH, 3.9), layout='constrained')
  axes = figure.subplots()
  short = max(map(len, styles)) <= _SHORT
  of_point = np.asarray(members)
  for name, own in styles.items():
    own_points = points[of_point == name]
    axes.scatter(
      own_points[:, 0],
      own_points[:, 1],
      s=34 if short else 15,
      color=own.colour,
      marker=f'${name}$' if short else own.marker,
      linewidths=0,
      alpha=0.75,
      label=name,
      rasterized=True,
    )
  axes.set_xticks([])
  axes.set_yticks([])
  if not short and len(styles) <= _NAMED:
    figure.legend(
      loc='outside lower center', ncols=3, fontsize=9, markerscale=1.5
    )
  return figure
