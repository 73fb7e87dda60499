"""Runs that are extended, or logged otherwise, in the folder that they have."""

import json
import re

import jax
import numpy as np
import pytest
import tiny

from moda_jax.errors import UserError
from moda_jax.training import recorded
from moda_jax.training.run_folder import read_metrics


@pytest.fixture(scope='module')
def extended(tmp_path_factory):
  """Returns a run of 4 steps, made one of 6 with other intervals."""
  workdir = tmp_path_factory.mktemp('extended')
  tiny.train(workdir, steps=4)
  changes = {'log_every': 1, 'eval_every': 3, 'checkpoint_every': 5}
  return tiny.train(workdir, steps=6, eval_batch_size=16, **changes), workdir


def test_an_extended_run_ends_with_the_bits_of_a_long_one(extended, tmp_path):
  outcome, workdir = extended
  straight = tiny.train(tmp_path, steps=6)
  jax.tree.map(
    np.testing.assert_array_equal,
    jax.device_get(outcome.state),
    jax.device_get(straight.state),
  )
  assert [line['step'] for line in read_metrics(workdir)] == [2, 4, 5, 6]
  assert outcome.accuracy == straight.accuracy
  config = json.loads((workdir / 'config.json').read_text())
  assert (config['run']['steps'], config['run']['log_every']) == (6, 1)


def test_epochs_extend_steps(extended):
  outcome, workdir = extended
  epoch = outcome.experiment.epoch_steps  # 5 steps of 8 for 40 examples
  tiny.train(workdir, steps=0, epochs=2)
  assert read_metrics(workdir)[-1]['step'] == 2 * epoch == 10


def test_a_shorter_run_is_refused(extended):
  before = (extended[1] / 'config.json').read_text()
  with pytest.raises(
    UserError, match=r'at step \d+ already.*folder of its own'
  ):
    tiny.train(extended[1], steps=3)
  assert (extended[1] / 'config.json').read_text() == before


@pytest.mark.parametrize(
  ('values', 'reason'),
  [
    ({'schedule': 'cosine'}, "the schedule 'cosine' depends on the length"),
    ({'method': 'mada'}, "the method 'mada' depends on the length"),
  ],
)
def test_what_depends_on_the_length_is_not_extended(tmp_path, values, reason):
  tiny.train(tmp_path / 'a', steps=2, **values)
  (tmp_path / 'a_2').mkdir()
  with pytest.raises(UserError) as error:
    tiny.train(tmp_path / 'a', steps=4, **values)
  text = str(error.value)
  assert re.search(rf'run.steps: 2 there, 4 now \({reason}\)', text)
  assert text.endswith(f"--workdir='{tmp_path / 'a_3'}'.")


def test_a_run_of_a_version_without_an_option_is_resumed(tmp_path):
  """An option that was added later, at its default, is no difference."""
  tiny.train(tmp_path, steps=2)
  path = tmp_path / 'config.json'
  config = json.loads(path.read_text())
  del config['optimizer']['ema_decay']
  del config['record']['inputs']['padded']
  config['search']['mu_s'] = [1, 2]
  path.write_text(json.dumps(config))
  tiny.train(tmp_path, steps=4)
  assert read_metrics(tmp_path)[-1]['step'] == 4
  now = json.loads(path.read_text())
  found = json.loads(json.dumps(now))
  del found['optimizer']['ema_decay']
  now['optimizer']['ema_decay'] = 0.5
  assert recorded.find_differences(found, now) == [
    'optimizer.ema_decay: 0.0 there, 0.5 now'
  ]
