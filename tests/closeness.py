"""How close two computations of the same numbers must be, on any CPU."""

import jax
import numpy as np


def tolerance(dtype, depth):
  """Returns the relative error that `depth` layers may bring by rounding.

  A layer rounds sums of many terms whose order depends on the CPU: 64 units in
  the last place for each, of which layers add theirs.

  Args:
    dtype: what is computed in.
    depth: layers that follow one another, backward passes and earlier
      training steps included.
  """
  return 64 * depth * float(np.finfo(dtype).eps)


def slope_tolerance(step, value):
  """Returns the absolute error of a central difference by rounding.

  Args:
    step: what the argument was moved by, to either side.
    value: that of the function, in float64, which the difference cancels.
  """
  return tolerance(np.float64, 1) * abs(float(value)) / step


def assert_close(found, expected, depth, dtype=np.float64):
  """Compares pytrees relative to the largest number in `expected`.

  An entry near zero carries the rounding of the large terms that cancelled in
  it, so that no error relative to the entry itself is small.
  """
  expected = jax.tree.map(np.asarray, jax.device_get(expected))
  scale = max(np.abs(leaf).max() for leaf in jax.tree.leaves(expected))
  rtol = tolerance(dtype, depth)

  def compare(path, one, other):
    name = jax.tree_util.keystr(path)
    np.testing.assert_allclose(one, other, rtol, rtol * scale, err_msg=name)

  jax.tree_util.tree_map_with_path(compare, jax.device_get(found), expected)
