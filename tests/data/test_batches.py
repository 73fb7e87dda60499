import jax
import numpy as np
import pytest
import scipy.sparse
import tensorflow as tf
import tiny

from moda_jax.data import batches
from moda_jax.data.domains import Domains
from moda_jax.data.spec import Part
from moda_jax.objectives import METHODS
from moda_jax.training import devices


def make(name, steps=3, **values):
  config = tiny.make_run_config(**values)
  batch_fn = batches.make_batch_fn(
    tiny.make_domains(), METHODS[name].batch_spec, config
  )
  return list(batches.make_batches(batch_fn, 0, steps)), batch_fn


def keys(batch):
  return {part: set(arrays) for part, arrays in batch.items()}


@pytest.mark.parametrize('name', tiny.EVERY_METHOD)
def test_a_batch_holds_what_the_method_declares_and_nothing_else(name):
  spec = METHODS[name].batch_spec
  (batch,), _ = make(name, steps=1)
  declared = set(spec.target_views)
  if spec.target_labels:
    declared.add('label')
  source = {'weak', 'label'} if spec.sources else set()
  if spec.source_strong:
    source.add('strong')
  assert keys(batch) == {'source': source, 'target': declared}


def test_shapes_and_dtypes():
  (batch,), _ = make('moda_fm', steps=1)
  assert batch['source']['weak'].shape == (3, 8, 32, 32, 3)
  assert batch['source']['label'].shape == (3, 8)
  assert batch['target']['weak'].shape == (8, 32, 32, 3)
  assert batch['target']['strong'].shape == (8, 32, 32, 3)
  assert batch['source']['weak'].dtype == np.uint8
  assert batch['source']['label'].dtype == np.int32


def test_a_batch_is_a_function_of_the_step():
  made, batch_fn = make('moda_fm', steps=5)
  alone = batch_fn(tf.constant(3, tf.int64))
  jax.tree.map(np.testing.assert_array_equal, alone, made[3])
  later = batches.make_batches(batch_fn, 3, 5)
  for batch, again in zip(made[3:], later, strict=True):
    jax.tree.map(np.testing.assert_array_equal, batch, again)


def test_steps_and_seeds_differ():
  made, _ = make('moda_fm', steps=2)
  (other,), _ = make('moda_fm', steps=1, seed=1)
  for view in ('weak', 'strong'):
    first = made[0]['target'][view]
    assert (first != made[1]['target'][view]).any()
    assert (first != other['target'][view]).any()


def test_labels_belong_to_their_images():
  domains = tiny.make_domains()
  made, _ = make('moda', steps=6)  # no strong view: images as they are
  for batch in made:
    source = batch['source']
    for j, domain in enumerate(domains.sources):
      images, labels = source['weak'][j], source['label'][j]
      for image, label in zip(images, labels, strict=True):
        same = (domain.inputs == image).all(axis=(1, 2, 3))
        assert same.sum() == 1
        assert domain.labels[same] == [label]


@pytest.mark.parametrize(
  ('name', 'weak', 'augmented'),
  [
    ('moda', 'auto', False),
    ('moda_fm', 'auto', True),
    ('moda', 'always', True),
    ('moda_fm', 'never', False),
  ],
)
def test_who_has_an_augmented_weak_view(name, weak, augmented):
  target = tiny.make_domains().target.inputs
  (batch,), _ = make(name, steps=1, weak_augment=weak)
  known = [
    (target == image).all(axis=(1, 2, 3)).any()
    for image in batch['target']['weak']
  ]
  assert all(known) != augmented


def test_split_over_devices_keeps_every_example_once():
  (batch,), _ = make('moda_fm', steps=1)
  split = devices.split_over_devices(batch, 4)
  assert split['source']['weak'].shape == (4, 3, 2, 32, 32, 3)
  assert split['target']['strong'].shape == (4, 2, 32, 32, 3)
  for device in range(4):
    own = slice(2 * device, 2 * device + 2)
    for key in ('weak', 'label'):
      np.testing.assert_array_equal(
        split['source'][key][device], batch['source'][key][:, own]
      )


@pytest.mark.parametrize(
  ('name', 'sizes', 'steps'),
  [
    ('moda', (40, 24, 30, 32), 3),
    ('moda', (8, 8, 8, 100), 7),
    ('source_only', (8, 24, 8, 100), 2),
    ('supervised', (100, 8, 8, 33), 3),
  ],
)
def test_an_epoch_is_as_long_as_the_largest_domain_read(name, sizes, steps):
  domains = tiny.make_domains((*sizes, 1))
  assert batches.epoch_steps(domains, METHODS[name].batch_spec, 16) == steps


def test_sparse_rows_become_dense_in_the_batch():
  rng = np.random.default_rng(0)

  def make_sparse(domain):
    matrix = scipy.sparse.random_array((domain.size, 7), density=0.3, rng=rng)
    rows = scipy.sparse.csr_array(matrix.astype(np.float32))
    return domain._replace(inputs=rows)

  dense = tiny.make_domains()
  sparse = Domains(
    tuple(make_sparse(d) for d in dense.sources),
    make_sparse(dense.target),
    dense.test,
  )
  same = Domains(
    tuple(d._replace(inputs=d.inputs.toarray()) for d in sparse.sources),
    sparse.target._replace(inputs=sparse.target.inputs.toarray()),
    dense.test,
  )
  config = tiny.make_run_config()
  made = [
    batches.make_batch_fn(d, METHODS['moda_fm'].batch_spec, config)
    for d in (sparse, same)
  ]
  for step in (0, 5):
    pair = [fn(tf.constant(step, tf.int64)) for fn in made]
    jax.tree.map(np.testing.assert_array_equal, *pair)
  assert pair[0]['source']['weak'].shape == (3, 8, 7)


def make_views(domain):
  """Returns a domain with four views `[N, 4, 7]` of features."""
  views = np.random.default_rng(0).normal(size=(domain.size, 4, 7))
  views = views.astype(np.float32)
  return domain._replace(inputs=views[:, 0], views=views)


def change_domains(change):
  made = tiny.make_domains()
  sources = tuple(change(domain) for domain in made.sources)
  return Domains(sources, change(made.target), made.test)


@pytest.mark.parametrize(
  ('domains', 'values'),
  [
    (tiny.make_domains(), {'weak_flip': True}),
    (tiny.make_domains(), {'cutout': 'last', 'batch_size': 50}),
    (tiny.make_sparse_domains(), {}),
    (change_domains(make_views), {}),
  ],
  ids=['images', 'more than a domain has', 'sparse rows', 'views of features'],
)
def test_a_part_has_the_rows_of_the_whole_batch(domains, values):
  """In samples, labels and views alike."""
  config = tiny.make_run_config(**values)
  spec = METHODS['moda_fm'].batch_spec
  batch_fn = batches.make_batch_fn(domains, spec, config)
  size = config.data.batch_size
  whole = list(batches.make_batches(batch_fn, 3, 5))
  for start, stop in ((0, size // 2), (size // 2, size), (2, 3)):
    own = batches.make_batches(batch_fn, 3, 5, Part(start, stop, size))
    for part, batch in zip(own, whole, strict=True):
      assert keys(part) == keys(batch)
      for key, rows in part['source'].items():
        np.testing.assert_array_equal(rows, batch['source'][key][:, start:stop])
      for key, rows in part['target'].items():
        np.testing.assert_array_equal(rows, batch['target'][key][start:stop])


def test_a_part_of_several_seeds_is_that_of_each():
  configs = [tiny.make_run_config(seed=seed) for seed in (1, 2)]
  batch_fn = batches.make_stacked_batch_fn(
    [tiny.make_domains()] * 2, METHODS['moda_fm'].batch_spec, configs
  )
  step = tf.constant(1, tf.int64)
  part, whole = batch_fn(step, Part(4, 8, 8)), batch_fn(step)
  for key, rows in part['source'].items():
    np.testing.assert_array_equal(rows, whole['source'][key][:, :, 4:])
  for key, rows in part['target'].items():
    np.testing.assert_array_equal(rows, whole['target'][key][:, 4:])
