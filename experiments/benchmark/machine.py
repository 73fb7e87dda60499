"""What the figures were measured on."""

import datetime
import importlib.metadata
import os
import pathlib
import platform
from typing import Any

_PACKAGES = ('jax', 'jaxlib', 'flax', 'optax', 'tensorflow-cpu', 'numpy')


def describe_machine() -> dict[str, Any]:
  """Returns processor, cores, memory, system, versions and the date."""
  now = datetime.datetime.now(datetime.UTC)
  return {
    'cpu': _find('/proc/cpuinfo', 'model name') or platform.processor(),
    'cores': len(os.sched_getaffinity(0)),
    'memory': _find('/proc/meminfo', 'MemTotal'),
    'system': platform.platform(),
    'load': [round(load, 2) for load in os.getloadavg()],
    'python': platform.python_version(),
    'packages': {name: _find_version(name) for name in _PACKAGES},
    'date': now.isoformat(timespec='seconds'),
  }


def _find(path: str, key: str) -> str:
  """Returns the value of the first line of a file that begins with `key`."""
  if not pathlib.Path(path).exists():  # not Linux
    return ''
  for line in pathlib.Path(path).read_text().splitlines():
    name, _, value = line.partition(':')
    if name.strip() == key:
      return value.strip()
  return ''


def _find_version(name: str) -> str:
  try:
    return importlib.metadata.version(name)
  except importlib.metadata.PackageNotFoundError:
    return 'missing'


def format_machine(machine: dict[str, Any]) -> list[str]:
  """Returns the lines of Markdown."""
  packages = ', '.join(f'{k} {v}' for k, v in machine['packages'].items())
  return [
    f'{machine["cpu"]}, {machine["cores"]} cores, {machine["memory"]} of '
    f'memory, {machine["system"]}; Python {machine["python"]}, {packages}.',
    '',
  ]


def format_time(machine: dict[str, Any]) -> str:
  """Returns when a part began and how busy the machine was."""
  minute = machine['date'][:16].replace('T', ' ')
  load = ', '.join(map(str, machine['load']))
  return f'Begun {minute} UTC, load over 1, 5 and 15 minutes {load}.'
