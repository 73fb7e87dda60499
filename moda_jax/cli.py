"""Command lines: flags, help, and mistakes that end in one message."""

import contextlib
import ctypes
import errno
import importlib
import logging
import os
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn

import absl.logging
from absl import app, flags

from moda_jax.errors import CommandEnd, Interrupted, Terminated, UserError

# Parameters of mallopt, see its manual page.
_M_TRIM_THRESHOLD, _M_MMAP_MAX, _M_ARENA_MAX = -1, -4, -8
_NEVER = 2**31 - 1
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
_HELP = ('-h', '--help', '-help', '--helpfull', '-?')


def run(
  main: Callable[[], object], parser: str = 'absl.app:parse_flags_with_usage'
) -> None:
  """Parses the flags, calls `main`, and exits with the status of its end.

  A mistake of the user ends in its message on the standard error stream and in
  a status other than 0, without a stack trace. --help prints the module's
  docstring and its own flags, before anything else is looked at.

  Args:
    main: what the command does.
    parser: the function that parses flags, as `module:name`; it is imported
      only if no help is asked for.
  """
  if any(argument in _HELP for argument in sys.argv[1:]):
    end_by_message(lambda: print(describe_command(), flush=True))
    sys.exit(0)
  keep_freed_memory()
  log_to_stdout()

  def start(argv: Sequence[str]) -> None:
    if argv[1:]:
      raise UserError(f'unexpected arguments {argv[1:]}; see --help.')
    main()

  module, _, name = parser.partition(':')
  parse_flags = getattr(importlib.import_module(module), name)
  end_by_message(lambda: app.run(start, flags_parser=parse_flags))


def end_by_message(main: Callable[[], object]) -> None:
  """Calls `main`; what ends it early becomes a message and an exit status."""
  try:
    with _catch_sigterm():
      main()
  except CommandEnd as end:
    print(end, file=sys.stderr)
    sys.exit(end.status)
  except BrokenPipeError:  # whoever read the output has seen enough
    sys.stderr.close()
    sys.exit(1)
  except _SigTerm:
    _leave('terminated', Terminated.status)
  except KeyboardInterrupt:  # before or after training, which handles its own
    _leave('interrupted', Interrupted.status)
  except OSError as error:
    if error.errno not in _NO_ROOM:
      raise
    print(f'Nothing can be written: {error}.', file=sys.stderr)
    sys.exit(UserError.status)


def _leave(message: str, status: int) -> NoReturn:
  """Ends the process without its libraries' own ends.

  Threads that were stopped in the midst of work crash there, which would take
  the place of the status.
  """
  # Ctrl-C ends what reads the output too.
  with contextlib.suppress(OSError):
    print(message, file=sys.stderr, flush=True)
  with contextlib.suppress(OSError):
    sys.stdout.flush()
  os._exit(status)


class _SigTerm(KeyboardInterrupt):
  """SIGTERM as Ctrl-C comes: no library takes it for an error of its own."""


@contextlib.contextmanager
def _catch_sigterm() -> Iterator[None]:
  """Has SIGTERM raise `_SigTerm`, where nobody else has asked for it."""
  in_main = threading.current_thread() is threading.main_thread()
  if not in_main or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
    yield
    return
  process = os.getpid()

  def handle(number: int, _: object) -> None:
    if os.getpid() == process:
      raise _SigTerm
    signal.signal(number, signal.SIG_DFL)  # a copy of the process ends as ever
    signal.raise_signal(number)

  signal.signal(signal.SIGTERM, handle)
  try:
    yield
  finally:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def describe_command() -> str:
  """Returns the help of the command that runs: its docstring and its flags.

  Its flags are those that it or another module of its package has defined.
  """
  module = sys.modules['__main__']
  lines = [(module.__doc__ or '').strip(), '', 'Flags:']
  package = _module_name().partition('.')[0]
  own = [
    flag
    for name, defined in flags.FLAGS.flags_by_module_dict().items()
    if name == sys.argv[0] or name.partition('.')[0] == package
    for flag in defined
  ]
  for flag in sorted(own, key=lambda flag: flag.name):
    has_default = flag.default not in (None, [], '')
    default = f' (default {flag.default})' if has_default else ''
    lines.append(f'  --{flag.name}: {flag.help}{default}')
  return '\n'.join(lines)


def in_notebook() -> bool:
  """Says whether this is a notebook's kernel."""
  ipython = sys.modules.get('IPython')
  shell = ipython.get_ipython() if ipython is not None else None
  return shell is not None and hasattr(shell, 'kernel')


def is_watched() -> bool:
  """Says whether what is printed goes to a terminal or a notebook."""
  return in_notebook() or sys.stdout.isatty()


def command_line() -> str:
  """Returns the command that runs, where it is one of ours; otherwise ''."""
  name = _module_name()
  if name.partition('.')[0] not in ('moda_jax', 'experiments'):
    return ''
  return shlex.join(['python', '-m', name, *sys.argv[1:]])


def _module_name() -> str:
  """Returns the name of the module that `python -m` runs; otherwise ''."""
  spec = getattr(sys.modules['__main__'], '__spec__', None)
  return spec.name.removesuffix('.__main__') if spec else ''


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
  size back to the system, which hands every page out again at the next step:
  more than half of a step where networks are large and batches small.
  """
  try:
    mallopt = ctypes.CDLL(None).mallopt
  except (AttributeError, OSError, TypeError):
    return
  mallopt(_M_MMAP_MAX, 0)
  mallopt(_M_TRIM_THRESHOLD, _NEVER)
  mallopt(_M_ARENA_MAX, 1)  # those of threads give large blocks back anyway
