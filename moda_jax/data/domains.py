"""Domains: what an experiment reads, in memory or on disk."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from moda_jax.data.rows import take_rows
from moda_jax.data.streamed import StreamedPictures

_ROWS = 2_000  # of a domain, to take means of


class Domain(NamedTuple):
  """The examples of one domain.

  Attributes:
    name: as in the config.
    origin: the TFDS name, folder or file that they come from.
    inputs: `[N, …]`, images as uint8, in memory or streamed, or a sparse
      matrix `[N, F]`.
    labels: `[N]` int32; None where they are not known.
    classes: the class names.
    examples: a name for each example, where it has one, such as its file's.
    padded: whether images were padded from MNIST's size.
    views: of rows: weak views of every example `[N, V, F]`, to draw from in
      training, of which the first is `inputs`; None where there are none.
    fingerprint: of the whole domain's files, which may be replaced by others
      of the same name; '' where the origin says it all.
    places: of each example in the whole domain; None where this is the whole.
  """

  name: str
  origin: str
  inputs: Any
  labels: np.ndarray | None
  classes: tuple[str, ...]
  examples: tuple[str, ...] = ()
  padded: bool = False
  views: np.ndarray | None = None
  fingerprint: str = ''
  places: np.ndarray | None = None

  @property
  def names(self) -> tuple[str, ...]:
    """What each example is called: its file, or its place in the domain."""
    places = range(self.size) if self.places is None else self.places
    return self.examples or tuple(str(place) for place in places)

  @property
  def size(self) -> int:
    """The number of examples."""
    return self.inputs.shape[0]

  @property
  def known_labels(self) -> np.ndarray:
    """The labels of a domain that must have them; else raises ValueError."""
    if self.labels is None:
      raise ValueError(f"the labels of '{self.name}' are not known")
    return self.labels

  def take(self, chosen: np.ndarray) -> 'Domain':
    """Returns the examples at these indices, in this order."""
    streamed = isinstance(self.inputs, StreamedPictures)
    inputs = self.inputs.select if streamed else self.inputs.__getitem__
    return self._replace(
      inputs=inputs(chosen),
      views=None if self.views is None else self.views[chosen],
      labels=None if self.labels is None else self.labels[chosen],
      examples=tuple(self.examples[i] for i in chosen) if self.examples else (),
      places=chosen if self.places is None else self.places[chosen],
    )


class Domains(NamedTuple):
  """All that an experiment reads.

  Attributes:
    sources: the labelled training examples, in the config's order.
    target: the target's training examples. Its labels go to no batch unless
      the method declares that it reads them.
    test: the target's examples to evaluate on.
    held: examples of the sources that are kept out of training, in the same
      order; empty where none are.
  """

  sources: tuple[Domain, ...]
  target: Domain
  test: Domain
  held: tuple[Domain, ...] = ()

  def describe(self) -> dict[str, str]:
    """Returns each domain's origin and number of examples, by name."""
    return {
      domain.name: f'{domain.origin}, {domain.size} examples'
      for domain in (*self.sources, self.target)
    }

  def fingerprints(self) -> dict[str, str]:
    """Returns each domain's fingerprint, by name, where it has one."""
    training = (*self.sources, self.target)
    return {d.name: d.fingerprint for d in training if d.fingerprint}

  @property
  def num_classes(self) -> int:
    """The number of classes, the same in every domain."""
    return len(self.sources[0].classes)


def labelled_name(target: str) -> str:
  """Returns the name of the source that labelled target examples make."""
  return f'{target}_labelled'


def map_domains(
  domains: Domains, change: Callable[[Domain], Domain]
) -> Domains:
  """Changes every domain; a target that is its own test set stays so."""
  target = change(domains.target)
  same = domains.test is domains.target
  return Domains(
    sources=tuple(change(domain) for domain in domains.sources),
    target=target,
    test=target if same else change(domains.test),
    held=tuple(change(domain) for domain in domains.held),
  )


def some_rows(domains: Domains) -> np.ndarray:
  """Returns training examples that are rows, as many of every domain.

  There are as many as the smallest domain has, evenly spaced, and at most
  2,000 of each. Labelled examples of the target count among the target's.
  """
  extra = labelled_name(domains.target.name)
  sources = [source for source in domains.sources if source.name != extra]
  training = (*sources, domains.target)
  count = min(_ROWS, *(domain.size for domain in training))
  chosen = [np.linspace(0, d.size - 1, count).astype(int) for d in training]
  return np.concatenate(
    [take_rows(d.inputs, c) for d, c in zip(training, chosen, strict=True)]
  )
