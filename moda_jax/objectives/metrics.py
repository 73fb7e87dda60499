"""Names of what methods log, in one place."""

LOSS = 'loss'
GRADIENT_NORM = 'gradient_norm'
SKIPPED = 'skipped'  # steps whose loss or gradients were not finite
CLASS = 'class'  # by source: class/svhn
DISCRIMINATOR = 'discriminator'  # and by domain: discriminator/svhn
DISCRIMINATOR_TARGET = 'discriminator_target'  # by source, of MDAN
CONSISTENCY = 'consistency'
CONFIDENT = 'confident'  # share of target samples above τ
ALPHA = 'alpha'  # by source
SPARSITY = 'sparsity'
EFFECTIVE_SOURCES = 'effective_sources'  # 1 / Σ α²
VIEW_MAGNITUDE = 'view_magnitude'  # mean of learned views, of 30
STRENGTH = 'lambda'  # of MADA's reversal
ENTROPY = 'entropy'  # of MoE's mixtures
MIXTURE = 'mixture'  # loss of the others' mixture by source, of MoE
ALIGNMENT = 'alignment'  # of MoE
MOMENT_DISTANCE = 'moment_distance'  # of M3SDA
MMD = 'mmd'
CORAL = 'coral'
ADAMATCH = 'adamatch'
ADAMATCH_CONFIDENT = 'adamatch_confident'  # share of target samples
CONFUSION = 'confusion'  # of MCC
TARGET_ENTROPY = 'target_entropy'
TAUGHT = 'taught'  # by source, of DAEL's experts
DAEL = 'dael'
DAEL_CONFIDENT = 'dael_confident'  # share of target samples
VARIETY = 'variety'  # entropy of the mean prediction


# Logged beside the losses, in units of their own.
NOT_LOSSES = (
  ADAMATCH_CONFIDENT,
  CONFIDENT,
  DAEL_CONFIDENT,
  f'{ALPHA}/',
  EFFECTIVE_SOURCES,
  GRADIENT_NORM,
  SKIPPED,
  STRENGTH,
  VIEW_MAGNITUDE,
)


def select(metrics: dict[str, float], name: str) -> dict[str, float]:
  """Returns the entries of `name` by source or domain, without the prefix."""
  prefix = f'{name}/'
  return {
    key.removeprefix(prefix): value
    for key, value in metrics.items()
    if key.startswith(prefix)
  }
