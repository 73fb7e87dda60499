"""Which values of the views training does not read, and why.

Not all: with `network=features`, which makes its views for all methods, those
of the weak view pass even where there is one view alone.
"""

import ml_collections

from moda_jax.models import NETWORKS
from moda_jax.models.mlp import DropoutOptions
from moda_jax.objectives import find_method, name_method

_STRONG = ('strong', 'cutout', 'randaugment_', 'learned_')
_RANGE = ('randaugment_min', 'randaugment_max')
_WEAK = ('weak_rotation', 'weak_translation')


def explain_unread_views(config: ml_collections.ConfigDict) -> dict[str, str]:
  """Returns beginnings of the names that nothing reads, with the reason.

  Args:
    config: its network may still be 'auto'.
  """
  views, network = config.views, config.network.name
  spec = find_method(config.objective).batch_spec
  method = name_method(config.objective)
  unread: dict[str, str] = {}
  if not (spec.has_strong_view or spec.source_strong):
    unread |= dict.fromkeys(_STRONG, f"'{method}' has no strong view")
  elif issubclass(NETWORKS.get(network, object), DropoutOptions):
    reason = f"dropout is the strong view of network='{network}'"
    unread |= dict.fromkeys(_STRONG, reason)
  elif views.strong == 'none':
    unread |= dict.fromkeys(_STRONG[1:], "strong='none' distorts nothing")
  elif views.strong == 'learned':
    unread |= dict.fromkeys(_RANGE, "strong='learned' learns the magnitudes")
  else:
    unread['learned_'] = f"strong='{views.strong}' learns nothing"
  if network in ('mlp', 'reviews'):
    unread['weak_'] = f"network='{network}' takes rows, which have no weak view"
  elif views.weak_augment == 'never':
    unread |= dict.fromkeys(_WEAK, "weak_augment='never' leaves both out")
  elif (
    views.weak_augment == 'auto'
    and not spec.has_strong_view
    and network not in ('auto', 'features')
  ):
    reason = f"'{method}' trains on images as they are; weak_augment='always' "
    unread |= dict.fromkeys(_WEAK, f'{reason}changes that')
  return unread


def why_unread(config: ml_collections.ConfigDict, full: str | None) -> str:
  """Returns why nothing reads a value of the views; '' for one that is read.

  Args:
    config: with all choices made.
    full: the name of any value, such as 'views.cutout'.
  """
  section, _, name = (full or '').partition('.')
  if section != 'views':
    return ''
  reasons = explain_unread_views(config).items()
  return next((why for start, why in reasons if name.startswith(start)), '')
