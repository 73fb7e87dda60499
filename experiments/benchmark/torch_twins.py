"""MODA-FM in PyTorch, twice: as people write it, and tuned.

Written from the paper. A batch holds lists of tensors: `source` and `label`,
one entry per source, and the target's `weak` and `strong` view.
"""

import random
import re
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from experiments.benchmark import torch_arrays
from experiments.benchmark.torch_networks import Networks

Batch = dict[str, Any]


class _Reverse(torch.autograd.Function):
  @staticmethod
  def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
    del ctx
    return x.view_as(x)

  @staticmethod
  def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
    del ctx
    return -gradient


reverse = _Reverse.apply


class AsWritten:
  """One forward pass per domain and view, logged at every step."""

  foreach = None  # PyTorch's own choice
  memory_format = torch.contiguous_format

  def __init__(self, setting: dict[str, Any]):
    self.setting = setting
    self.networks = Networks(setting).to(memory_format=self.memory_format)
    self.networks.train()
    self.optimizer = torch.optim.Adadelta(
      _make_groups(self.networks, setting),
      lr=setting['learning_rate'],
      rho=setting['rho'],
      eps=setting['eps'],
      foreach=self.foreach,
    )
    self.log = []

  def prepare(self, x: torch.Tensor) -> torch.Tensor:
    """Returns an input in the layout that the networks want."""
    if x.dim() < 4:
      return x
    return x.contiguous(memory_format=self.memory_format)

  def step(self, batch: Batch) -> None:
    """Takes one training step."""
    self.optimizer.zero_grad()
    loss, parts = self.loss(batch)
    loss.backward()
    self.optimizer.step()
    self.record(loss, parts)

  def record(self, loss: torch.Tensor, parts: dict[str, torch.Tensor]) -> None:
    """Keeps what is to be logged, read at once."""
    values = {name: part.tolist() for name, part in parts.items()}
    self.log.append({'loss': loss.item(), **values})

  def loss(self, batch: Batch) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """Returns the loss and its parts."""
    nets = self.networks
    class_losses, source_losses = [], []
    for x, y in zip(batch['source'], batch['label'], strict=True):
      z = nets.extractor(x)
      class_losses.append(F.cross_entropy(nets.classifier(z), y))
      source_losses.append(_domain_loss(nets.discriminator(reverse(z)), 0))
    z = nets.extractor(batch['weak'])
    target_loss = _domain_loss(nets.discriminator(reverse(z)), 1)
    with torch.no_grad():
      weak_logits = nets.classifier(z)
    z = nets.extractor(batch['strong'], *self._draw_dropout())
    consistency = self._consistency(weak_logits, nets.classifier(z))
    return self._join(
      torch.stack(class_losses),
      torch.stack(source_losses),
      target_loss,
      consistency,
    )

  def _draw_dropout(self) -> tuple[float, ...]:
    if not self.networks.has_dropout:
      return ()
    return (random.uniform(*self.setting['dropout']),)

  def _consistency(
    self, weak_logits: torch.Tensor, strong_logits: torch.Tensor
  ) -> torch.Tensor:
    probability, label = weak_logits.detach().softmax(1).max(1)
    losses = F.cross_entropy(strong_logits, label, reduction='none')
    return (losses * (probability > self.setting['tau'])).mean()

  def _join(
    self,
    class_losses: torch.Tensor,
    source_losses: torch.Tensor,
    target_loss: torch.Tensor,
    consistency: torch.Tensor,
  ) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    alpha = self.networks.beta.softmax(0)
    discriminator = (reverse(alpha) * source_losses).sum() + target_loss
    loss = (
      (alpha * class_losses).sum()
      + self.setting['mu_c'] * consistency
      + self.setting['mu_d'] * discriminator
      + self.setting['mu_s'] * (alpha**2).sum()
    )
    parts = {
      'class': class_losses,
      'discriminator': discriminator,
      'consistency': consistency,
      'alpha': alpha,
    }
    return loss, {name: part.detach() for name, part in parts.items()}


class Tuned(AsWritten):
  """One pass for all, channels last, `foreach` AdaDelta, rarely logged.

  With BatchNorm the domains must be normalised apart: there they pass one
  after the other, which on CPUs costs next to nothing at these sizes.
  """

  foreach = True
  memory_format = torch.channels_last

  def record(self, loss: torch.Tensor, parts: dict[str, torch.Tensor]) -> None:
    """Keeps the tensors, to be read by whoever wants them."""
    self.log = [{'loss': loss.detach(), **parts}]

  def loss(self, batch: Batch) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """Returns the loss and its parts."""
    nets, count = self.networks, len(batch['source'])
    if nets.has_batch_norm:
      return super().loss(batch)
    clean = torch.cat([*batch['source'], batch['weak']])
    if nets.has_dropout:
      strong = nets.extractor(batch['strong'], *self._draw_dropout())
      z = torch.cat([nets.extractor(clean), strong])
    else:
      z = nets.extractor(torch.cat([clean, batch['strong']]))
    size = len(batch['weak'])
    logits = nets.classifier(z).split(size)
    domain_logits = nets.discriminator(reverse(z[:-size])).split(size)
    class_losses = [
      F.cross_entropy(own, y)
      for own, y in zip(logits[:count], batch['label'], strict=True)
    ]
    source_losses = [_domain_loss(own, 0) for own in domain_logits[:count]]
    return self._join(
      torch.stack(class_losses),
      torch.stack(source_losses),
      _domain_loss(domain_logits[count], 1),
      self._consistency(logits[count], logits[count + 1]),
    )


TWINS = {'as written': AsWritten, 'tuned': Tuned}


def _domain_loss(logits: torch.Tensor, domain: int) -> torch.Tensor:
  labels = torch.full((len(logits),), domain)
  return F.cross_entropy(logits, labels)


def _make_groups(
  networks: nn.Module, setting: dict[str, Any]
) -> list[dict[str, Any]]:
  """Returns the optimizer's groups: parameters of the same rate."""
  groups = {}
  for name, parameter in torch_arrays.our_names(networks).items():
    multiple = next(
      m for pattern, m in setting['rates'] if re.search(pattern, name)
    )
    if name == 'beta':
      multiple *= setting['beta_rate']
    groups.setdefault(multiple, []).append(parameter)
  return [
    {'params': parameters, 'lr': setting['learning_rate'] * multiple}
    for multiple, parameters in groups.items()
  ]
