import ml_collections
import numpy as np
import pytest
import scipy.sparse
import tiny
from PIL import Image
from sklearn.feature_extraction.text import TfidfTransformer

from moda_jax.data import features
from moda_jax.data.domains import Domain, Domains
from moda_jax.errors import UserError

RNG = np.random.default_rng(0)


def counts(rows):
  return scipy.sparse.random_array(
    (rows, 30),
    density=0.2,
    rng=RNG,
    dtype=np.float32,
    data_sampler=lambda size: RNG.integers(1, 9, size),
  ).tocsr()


def make_domains():
  def make(name, rows):
    labels = np.zeros(rows, np.int32)
    return Domain(name, 'made up', counts(rows), labels, ('n', 'p'))

  return Domains((make('a', 12), make('b', 9)), make('t', 7), make('t', 11))


def make_ready(domains, **values):
  config = ml_collections.ConfigDict({'features': 'counts', 'image_size': 0})
  config.update(values)
  return features.prepare_inputs(domains, config)


def test_tfidf_is_that_of_scikit_learn_fitted_on_training_samples():
  domains = make_domains()
  training = [*domains.sources, domains.target]
  oracle = TfidfTransformer().fit(
    scipy.sparse.vstack([d.inputs for d in training])
  )
  made = make_ready(domains, features='tfidf')
  for before, after in zip(
    (*training, domains.test),
    (*made.sources, made.target, made.test),
    strict=True,
  ):
    np.testing.assert_allclose(
      after.inputs.toarray(),
      oracle.transform(before.inputs).toarray(),
      rtol=1e-5,
    )


def test_test_samples_have_no_part_in_idf():
  domains = make_domains()
  other = domains._replace(test=domains.test._replace(inputs=counts(50)))
  made = [make_ready(d, features='tfidf') for d in (domains, other)]
  np.testing.assert_array_equal(
    made[0].target.inputs.toarray(), made[1].target.inputs.toarray()
  )


def test_counts_stay_as_they_are():
  domains = make_domains()
  assert make_ready(domains) is domains


def test_images_are_brought_to_one_size_as_pillow_does():
  domains = tiny.make_domains()
  made = make_ready(domains, image_size=20)
  image = Image.fromarray(domains.sources[0].inputs[3])
  expected = image.resize((20, 20), Image.Resampling.BILINEAR)
  np.testing.assert_array_equal(made.sources[0].inputs[3], expected)
  assert made.test.inputs.shape == (21, 20, 20, 3)


def test_images_of_different_sizes_are_refused():
  domains = tiny.make_domains()
  small = domains.target._replace(inputs=domains.target.inputs[:, :16, :16])
  with pytest.raises(UserError, match='t 16×16'):
    make_ready(domains._replace(target=small))
