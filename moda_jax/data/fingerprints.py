"""What tells the examples of a domain from others."""

import hashlib

import numpy as np
import scipy.sparse

from moda_jax.data.domains import Domain
from moda_jax.data.pictures import PictureFiles, UnsizedPictures

_LENGTH = 12
_READ = 20_000  # files whose content is looked at


def fingerprint(domain: Domain) -> str:
  """Returns it, from the content of the inputs, their names and labels.

  Of very many files the lengths are taken for their content, so that a run
  starts soon.
  """
  inputs, labels = domain.inputs, domain.labels
  whole = hashlib.sha256(str(inputs.shape).encode())
  if isinstance(inputs, PictureFiles) and len(inputs) > _READ:
    whole.update(np.asarray(inputs.lengths(), np.int64).data)
  elif isinstance(inputs, UnsizedPictures):
    whole.update(b''.join(inputs.digest(range(len(inputs)))))
  else:
    sparse = scipy.sparse.issparse(inputs)
    parts = (inputs.data, inputs.indices, inputs.indptr) if sparse else [inputs]
    for array in parts:
      whole.update(np.ascontiguousarray(array).data)
  if labels is not None:
    whole.update(np.ascontiguousarray(labels).data)
  for name in domain.examples:
    whole.update(name.encode(errors='surrogateescape') + b'\0')
  return whole.hexdigest()[:_LENGTH]
