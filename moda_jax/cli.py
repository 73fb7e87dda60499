"""Command lines: flags, configs, and mistakes that end in one message."""

import ctypes
import logging
import re
import sys
from collections.abc import Callable, Sequence

import absl.logging
from absl import app, flags

from moda_jax.errors import Interrupted, RunEnd, UserError

# Of mallopt, see its manual page.
_M_TRIM_THRESHOLD, _M_MMAP_MAX, _M_ARENA_MAX = -1, -4, -8
_NEVER = 2**31 - 1


def run(main: Callable[[], None]) -> None:
  """Parses the flags, calls `main`, and exits with the status of its end.

  A mistake of the user ends in its message on the standard error stream and in
  a status other than 0, without a stack trace.
  """
  keep_freed_memory()
  log_to_stdout()

  def start(argv: Sequence[str]) -> None:
    if argv[1:]:
      raise UserError(f'unexpected arguments {argv[1:]}; see --help.')
    main()

  try:
    app.run(start, flags_parser=_parse_flags)
  except RunEnd as end:
    print(end, file=sys.stderr)
    sys.exit(end.status)
  except KeyboardInterrupt:  # before or after training, which handles its own
    print('interrupted', file=sys.stderr)
    sys.exit(Interrupted.status)


def _parse_flags(argv: list[str]) -> list[str]:
  """Parses flags; config flags report some mistakes as other exceptions."""
  try:
    remaining = app.parse_flags_with_usage(argv)
  except (AttributeError, KeyError) as error:
    raise UserError(_describe_unknown_fields(argv)) from error
  except ImportError as error:
    raise UserError(
      f'--config: the config file cannot be used: {error}. Configs that build '
      'on others are to be used from the folder that holds configs/.'
    ) from error
  except SyntaxError as error:
    raise UserError(
      f'--config: {error.filename} is no Python file of a config: {error.msg}.'
    ) from error
  if 'config' in flags.FLAGS:
    try:
      # A config file that is not there is told of only when it is looked at.
      _ = flags.FLAGS.config.keys()
    except OSError as error:
      raise UserError(
        f'--config={flags.FLAGS["config"].config_filename}: no such config '
        'file, or unreadable.'
      ) from error
  return remaining


def _describe_unknown_fields(argv: list[str]) -> str:
  given = re.search(r'--?config[= ](\S+)', ' '.join(argv))
  config = flags.FLAGS['config'].parser.parse(given.group(1))
  overrides = re.findall(r'--config\.([^\s=]+)', ' '.join(argv))
  unknown = [name for name in overrides if not _has_field(config, name)]
  names = ', '.join(f'config.{name}' for name in unknown)
  known = ', '.join(sorted(config))
  return f'{names}: no such value in the config; it has {known}.'


def _has_field(config: object, path: str) -> bool:
  for name in path.split('.'):
    if not hasattr(config, 'keys') or name not in config:
      return False
    config = config[name]
  return True


def log_to_stdout() -> None:
  """Shows this package's log on the standard output; of others, warnings."""
  absl.logging.set_verbosity(absl.logging.WARNING)
  handler = logging.StreamHandler(sys.stdout)
  handler.setFormatter(logging.Formatter('%(asctime)s %(message)s', '%H:%M:%S'))
  package = logging.getLogger('moda_jax')
  package.handlers = [handler]
  package.setLevel(logging.INFO)
  package.propagate = False


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
