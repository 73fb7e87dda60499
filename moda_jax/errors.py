"""The ways in which a command ends early, each with an exit status.

The command line prints their message alone, without a stack trace.
"""


class CommandEnd(Exception):
  """A command cannot go on, and its message says all there is to say.

  Attributes:
    status: what the command exits with.
    shared: whether it ends all processes of a run alike, where there are
      several.
  """

  status = 1
  shared = False


class UserError(CommandEnd):
  """A value from outside is wrong: a config, a file, a command line.

  The message names the value, where it is and what is allowed there.
  """

  status = 2


class NonFiniteError(CommandEnd):
  """A loss or a gradient became infinite or not a number."""

  status = 3
  shared = True


class ProcessLost(CommandEnd):
  """Another process of the same run has ended or cannot be reached."""

  status = 4


class Interrupted(CommandEnd):
  """The run was asked to stop by Ctrl-C and has saved its state."""

  shared = True
  status = 130  # as a shell gives after SIGINT


class Terminated(Interrupted):
  """The same by SIGTERM, as schedulers and preemptible machines send it."""

  status = 143
