"""Memory of the host, kept for the next step instead of given back."""

import ctypes

# Of mallopt, see its manual page.
_M_TRIM_THRESHOLD, _M_MMAP_MAX, _M_ARENA_MAX = -1, -4, -8
_NEVER = 2**31 - 1


def keep_freed_memory() -> None:
  """Has this process reuse what it frees; call it before threads start.

  Where libc is not glibc, nothing changes.

  A step on CPUs frees the memory of its gradients. glibc gives blocks of that
  size back to the system, which hands every page out anew at the next step:
  more than half of a step where networks are large and batches small.
  """
  try:
    mallopt = ctypes.CDLL(None).mallopt
  except (AttributeError, OSError, TypeError):
    return
  mallopt(_M_MMAP_MAX, 0)
  mallopt(_M_TRIM_THRESHOLD, _NEVER)
  mallopt(_M_ARENA_MAX, 1)  # those of threads give large blocks back anyway
