"""The ways in which a run ends before its end, each with an exit status.

The command line prints their message alone, without a stack trace.
"""


class RunEnd(Exception):
  """A run cannot go on, and its message says all there is to say."""

  status = 1


class UserError(RunEnd):
  """A value from outside is wrong: a config, a file, a command line.

  The message names the value, where it stands and what is allowed there.
  """

  status = 2


class NonFiniteError(RunEnd):
  """A loss or a gradient became infinite or not a number."""

  status = 3


class Interrupted(RunEnd):
  """The run was asked to stop and has saved its state."""

  status = 130  # as a shell gives after SIGINT
