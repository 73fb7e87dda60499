"""Several seeds in one compiled program, each as if it were trained alone.

Parameters, optimizer's accumulators and method's state of all runs are stacked
along a first axis, as are their batches; the step of one run is vmapped over
them. All share the number of the step, so that the loop sees a run like
any other. A run differs from its single run by rounding alone. With a single
seed nothing is stacked.

This pays on accelerators. On a CPU it gains nothing, and ResNet's convolutions
become grouped ones, which are slow there: train them one seed after the other.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from moda_jax.data.domains import Domains
from moda_jax.objectives.forward import Batch, Metrics
from moda_jax.objectives.method import Method
from moda_jax.training.evaluation import (
  ACCURACY,
  DEVIATION,
  Evaluator,
  seed_accuracy,
)
from moda_jax.training.train_step import (
  StepOptions,
  TrainState,
  TrainStep,
  make_train_step,
)

_STACKED: Any = 0  # the axis of the runs, in the place of arrays
_SHARED: Any = None
_AXES = TrainState(
  step=_SHARED,
  params=_STACKED,
  opt_state=_STACKED,
  method_state=_STACKED,
  ema_params=_STACKED,
  view_weights=_STACKED,
)


def stack_states(states: Sequence[TrainState]) -> TrainState:
  """Stacks states of the same step; a single one stays as it is."""
  if len(states) == 1:
    return states[0]
  stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)
  return stacked.replace(step=states[0].step)


def take_seed(state: TrainState, index: int) -> TrainState:
  """Returns one run's state, as its single run has it."""
  taken = jax.tree.map(lambda x: x[index], state.replace(step=None))
  return taken.replace(step=state.step)


def make_step(
  method: Method,
  tx: optax.GradientTransformation,
  rngs: Sequence[jax.Array],
  options: StepOptions,
) -> TrainStep:
  """Returns the step of all runs at once, not yet compiled.

  Args:
    method: of all runs.
    tx: the optimizer of all runs.
    rngs: the key of each run, see `train_step.make_train_step`.
    options: of each run, which skips its own steps.

  Returns:
    A function from stacked state and batch to the new stacked state and to
    metrics `[seeds]`.
  """
  if len(rngs) == 1:
    return make_train_step(method, tx, rngs[0], options)

  def step_of_one(
    state: TrainState, batch: Batch, rng: jax.Array
  ) -> tuple[TrainState, Metrics]:
    step = make_train_step(method, tx, rng, options)
    return step(state, batch)

  step = jax.vmap(step_of_one, in_axes=(_AXES, 0, 0), out_axes=(_AXES, 0))
  stacked = jnp.stack(rngs)
  return lambda state, batch: step(state, batch, stacked)


def average_predictions(
  predict: Callable[..., jax.Array], count: int
) -> Callable[..., jax.Array]:
  """Makes `predict(params, state, x)` the mean over stacked runs."""
  if count == 1:
    return predict
  predict_each = jax.vmap(predict, (0, 0, None))
  return lambda *args: predict_each(*args).mean(axis=0)


class SeedsEvaluator:
  """Evaluates every run on its own test examples."""

  def __init__(self, evaluator: Evaluator, domains: dict[int, Domains]):
    """Prepares to evaluate.

    Args:
      evaluator: of a single run.
      domains: each seed's, in the order of the stack.
    """
    self._method = evaluator.method
    self._evaluators = {
      seed: evaluator.for_domains(own) for seed, own in domains.items()
    }

  def accuracies(self, state: TrainState) -> dict[str, float]:
    """Returns means over the seeds, by the metric's name.

    Beside them are the accuracy of every seed and their standard deviation,
    that of a sample. For a method that gives several predictions the best one
    of each seed is what is averaged, as in single runs.
    """
    each = {
      seed: evaluator.accuracies(take_seed(state, i))
      for i, (seed, evaluator) in enumerate(self._evaluators.items())
    }
    runs = list(each.values())
    means = {name: float(np.mean([r[name] for r in runs])) for name in runs[0]}
    if not means:
      return {}
    deviation = float(np.std([run[ACCURACY] for run in runs], ddof=1))
    by_seed = {seed_accuracy(s): run[ACCURACY] for s, run in each.items()}
    return means | by_seed | {DEVIATION: deviation}

  def judge(self, state: TrainState) -> dict[str, float]:
    """Returns the means over the seeds of what `Evaluator.judge` gives.

    Beside them are the values of every seed, with `/seed_N` behind the name.
    """
    each = {
      seed: evaluator.judge(take_seed(state, i))
      for i, (seed, evaluator) in enumerate(self._evaluators.items())
    }
    runs = list(each.values())
    known = [name for name in runs[0] if all(name in run for run in runs)]
    means = {name: float(np.mean([r[name] for r in runs])) for name in known}
    return means | {
      f'{name}/seed_{seed}': run[name]
      for seed, run in each.items()
      for name in known
    }

  def observe_sources(self, state: TrainState) -> TrainState:
    """See `Evaluator`; every run is shown its own source examples."""
    if self._method.observe_sources is None:
      return state
    evaluators = enumerate(self._evaluators.values())
    return stack_states(
      [e.observe_sources(take_seed(state, i)) for i, e in evaluators]
    )


def make_evaluator(
  evaluator: Evaluator, domains: dict[int, Domains]
) -> Evaluator | SeedsEvaluator:
  """Returns the evaluator of stacked states; of a single seed its own."""
  return evaluator if len(domains) == 1 else SeedsEvaluator(evaluator, domains)
