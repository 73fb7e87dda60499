"""The tables of experiments: what is trained, recorded, imported, shown."""

import json
import re
import threading

import pytest
from made_up_runs import write_run

from experiments import tables
from experiments.figures import method_table
from experiments.runs import descriptions, records, runner
from experiments.runs.requests import make_requests
from experiments.runs.scales import find_setting
from moda_jax.errors import Interrupted, UserError
from moda_jax.training.config_files import get_config

TINY = find_setting('digits', 'tiny')


class Trained:
  """Stands in for training: writes run folders with made-up accuracies."""

  def __init__(self, failing=(), interrupted=()):
    self.requests = []
    self.slots = set()
    self._failing = failing
    self._interrupted = interrupted
    self._lock = threading.Lock()

  def __call__(self, request, slot):
    with self._lock:
      self.requests.append(request)
      self.slots.add(slot.cores)
    if request.method in self._failing:
      raise UserError(f'{request.name} ended with status 1')
    if request.method in self._interrupted:
      raise Interrupted('stopped')
    accuracy = 0.5 + request.seed / 10 + (request.method == 'fm') / 4
    write_run(request.folder, request.config(), accuracy)

  @property
  def keys(self):
    return [(r.target, r.method, r.seed) for r in self.requests]


def train(
  tmp_path,
  trained,
  methods=('fm', 'moda'),
  seeds=2,
  targets=('mnist', 'mnistm'),
  values=(),
  slots=2,
):
  requests = make_requests(
    TINY, targets, methods, range(seeds), tmp_path / 'runs', values
  )
  path = tmp_path / 'results' / 'digits_tiny.jsonl'
  runner.train_missing(
    requests, path, [runner.Slot((i,)) for i in range(slots)], trained
  )
  return path


def test_every_target_method_and_seed_is_trained_once(tmp_path):
  trained = Trained()
  path = train(tmp_path, trained)
  assert len(set(trained.keys)) == len(trained.keys) == 8
  for request in trained.requests:
    config = request.config()
    sources = set(config.data.datasets) - {request.target}
    assert set(config.data.sources) == sources
    assert config.network.width == TINY.values['width']
  lines = records.read_lines(path)
  found = {(x['target'], x['method'], x['seed']): x for x in lines}
  assert set(found) == set(trained.keys)
  line = found['mnistm', 'fm', 1]
  assert line['accuracy'] == 0.85
  assert (line['experiment'], line['scale']) == ('digits', 'tiny')
  assert line['steps'] == 6
  assert line['train_seconds'] == 3.0  # six steps, two in a second
  assert line['curve']['step'] == [2, 4, 6]
  assert line['config']['objective.method'] == 'fm'
  assert 'objective.mu_s' not in line['config']  # FM does not read it
  assert re.fullmatch(r'[0-9a-f]{40}\+?', line['commit'] or '0' * 40)


def test_what_is_recorded_is_not_trained_again(tmp_path):
  trained = Trained()
  train(tmp_path, trained, seeds=1)
  assert len(trained.keys) == 4
  train(tmp_path, trained, seeds=2)
  assert [seed for _, _, seed in trained.keys[4:]] == [1] * 4
  train(tmp_path, trained, methods=('fm', 'moda', 'moe'))
  assert [method for _, method, _ in trained.keys[8:]] == ['moe'] * 4
  train(tmp_path, trained, values=['mu_d=0.5'])  # which FM does not read
  assert {method for _, method, _ in trained.keys[12:]} == {'moda'}


def test_a_failure_is_reported_and_leaves_the_others_alone(tmp_path):
  trained = Trained(failing=['moda'])
  with pytest.raises(UserError, match='mnist moda seed 0 ended with status 1'):
    train(tmp_path, trained, seeds=1, slots=1)
  path = tmp_path / 'results' / 'digits_tiny.jsonl'
  assert {line['method'] for line in records.read_lines(path)} == {'fm'}
  assert len(records.read_lines(path)) == 2


@pytest.mark.parametrize(
  ('error', 'reason'),
  [
    (PermissionError(13, 'Permission denied', '/runs'), "denied: '/runs'"),
    (KeyError('step'), "KeyError: 'step'"),
  ],
)
def test_whatever_goes_wrong_in_a_run_is_reported(tmp_path, error, reason):
  trained = Trained()

  def train_or_fail(request, slot):
    trained(request, slot)
    if request.target == 'mnist':
      raise error

  message = f'mnist fm seed 0 and 1 more failed: .*{reason}'
  with pytest.raises(UserError, match=message):
    train(tmp_path, train_or_fail, seeds=1, slots=1)
  path = tmp_path / 'results' / 'digits_tiny.jsonl'
  found = {line['target'] for line in records.read_lines(path)}
  assert found == {'mnistm'}


def test_a_folder_that_cannot_be_made_is_reported(tmp_path):
  (tmp_path / 'runs').write_text('not a folder')
  with pytest.raises(UserError, match=r'mnist fm seed 0 failed: .*Not a dir'):
    train(tmp_path, runner.train_in_process, ['fm'], 1, ['mnist'])


@pytest.mark.parametrize(
  ('program', 'reason'),
  [
    (
      "print('12:00:01 step 3', flush=True)\n"
      "print('Not prepared.\\nSee there.', file=sys.stderr)\n"
      'sys.exit(2)',
      'Not prepared.\nSee there.',
    ),
    ("raise KeyError('x')", "status 1 after it wrote: KeyError: 'x'"),
    (
      "print('12:00:01 step 3', flush=True)\nos.kill(os.getpid(), 9)",
      'status -9 after it wrote: 12:00:01 step 3',
    ),
    ('sys.exit(2)', 'status 2 after it wrote: nothing'),
  ],
)
def test_a_process_that_fails_gives_its_reason(tmp_path, program, reason):
  (tmp_path / 'failing.py').write_text(f'import os, sys\n{program}\n')
  log = tmp_path / 'a.log'
  log.write_text('an earlier message\n')
  slot = runner.Slot((), {'PYTHONPATH': str(tmp_path)})
  with pytest.raises(UserError) as caught:
    runner.run_process(['failing'], log, slot, 'a')
  assert str(caught.value) == reason


def test_runs_that_share_a_gpu_share_its_memory(monkeypatch):
  monkeypatch.delenv('JAX_PLATFORMS', raising=False)
  monkeypatch.setenv('CUDA_VISIBLE_DEVICES', '2,5')
  name = 'XLA_PYTHON_CLIENT_MEM_FRACTION'
  alone = [slot.environment for slot in runner.find_slots(2)]
  assert alone == [{'CUDA_VISIBLE_DEVICES': gpu} for gpu in '25']
  shared = [slot.environment for slot in runner.find_slots(3)]
  assert shared == [
    {'CUDA_VISIBLE_DEVICES': gpu, name: '0.450'} for gpu in '252'
  ]
  monkeypatch.setenv('XLA_CLIENT_MEM_FRACTION', '0.3')
  assert all(name not in slot.environment for slot in runner.find_slots(3))


@pytest.mark.parametrize(
  ('file', 'platforms', 'library', 'is_tpu'),
  [
    ('accel0', '', True, True),
    ('vfio/0', 'tpu,cpu', True, True),
    ('vfio/0', '', False, False),
    ('accel0', 'cpu', True, False),
    ('accel/accel0', '', True, False),
    ('vfio/vfio', '', True, False),
  ],
)
def test_a_tpu_serves_one_run_at_a_time(
  tmp_path, monkeypatch, file, platforms, library, is_tpu
):
  if library:
    (tmp_path / 'libtpu').mkdir()
    (tmp_path / 'libtpu/__init__.py').touch()
    monkeypatch.syspath_prepend(tmp_path)
  (tmp_path / file).parent.mkdir(exist_ok=True)
  (tmp_path / file).touch()
  monkeypatch.setattr(runner, '_DEVICES', tmp_path)
  monkeypatch.setenv('JAX_PLATFORMS', platforms)
  monkeypatch.setenv('CUDA_VISIBLE_DEVICES', '')
  assert (runner.find_slots() == [runner.Slot()]) == is_tpu
  if is_tpu:
    with pytest.raises(UserError, match='--jobs=2: the chips of a TPU'):
      runner.find_slots(2)


def test_an_interrupted_run_stops_the_others_from_starting(tmp_path):
  trained = Trained(interrupted=['moda'])
  with pytest.raises(Interrupted, match='the same command goes on'):
    train(tmp_path, trained, slots=1)
  assert trained.keys == [('mnist', 'fm', 0), ('mnist', 'moda', 0)]


def test_runs_at_other_values_have_rows_and_folders_of_their_own(tmp_path):
  trained = Trained()
  train(tmp_path, trained, methods=['moda_fm'], seeds=1)
  path = train(
    tmp_path,
    trained,
    methods=['moda_fm'],
    seeds=1,
    values=['steps=3', 'mu_c=0.5'],
  )
  assert len({request.folder for request in trained.requests}) == 4
  text = method_table.format_markdown(
    method_table.make_table(TINY, records.read_lines(path))
  )
  assert '| `moda_fm` | 50.0 | 50.0 | 50.0 |' in text
  assert '| `moda_fm` (mu_c=0.5, steps=3) | 50.0 | 50.0 | 50.0 |' in text


@pytest.mark.parametrize(
  ('values', 'named'),
  [
    ({'methods': ('fm', 'dan')}, "--methods names 'dan'"),
    ({'methods': ()}, "--methods names 'nothing'"),
    ({'targets': ['mnistm', 'svhn']}, "--targets names 'svhn'; known"),
    ({'values': ['mu_x=1']}, "no value 'mu_x'"),
    ({'values': ['moe_rank=3']}, 'none of the methods reads it'),
    ({'values': ['mu_d=-3']}, r'config\.objective\.mu_d = -3'),
  ],
)
def test_what_cannot_be_trained_is_refused(tmp_path, values, named):
  trained = Trained()
  with pytest.raises(UserError, match=named):
    train(tmp_path, trained, **values)
  assert not trained.requests


def test_parts_are_set_before_the_values_that_only_they_read(tmp_path):
  values = ['mcc_temperature=2.0', 'target_term=fixmatch+mcc', 'tau=0.8']
  (request,) = make_requests(
    find_setting('digits', 'tiny'), ['mnistm'], ['fm'], [3], tmp_path, values
  )
  objective = request.config().objective
  assert objective.target_term == 'fixmatch+mcc'
  assert (objective.mcc_temperature, objective.tau) == (2.0, 0.8)
  assert request.config().run.seed == 3


def test_an_unknown_scale_is_refused():
  with pytest.raises(UserError, match='digits has the scales paper, regen'):
    find_setting('digits', 'features')


def make_by_hand(folder, argument, **values):
  """Writes the folder of a run that `moda_jax.main` has trained by itself."""
  config = get_config(argument)
  config.data.datasets.synth = 'synth_digits/regenerated'
  write_run(folder, config, 0.7, **values)


def test_finished_runs_are_imported_once(tmp_path):
  setting = find_setting('digits', 'small')
  base = 'digits:mnistm,width=0.25,epochs=2,eval_every=500'
  make_by_hand(tmp_path / 'hand' / 'a', f'{base},method=fm', loss=2.0)
  make_by_hand(
    tmp_path / 'hand' / 'b',
    f'{base},method=moda_fm,mu_c=0.5,data_dir={tmp_path / "sets"}',
    **{'alpha/mnist': 0.25, 'alpha/svhn': 0.75},
  )
  path = tmp_path / 'digits_small.jsonl'
  patterns = [str(tmp_path / 'hand' / '*')]
  assert tables.import_runs(setting, patterns, path, 'abc') == 2
  assert tables.import_runs(setting, patterns, path, 'abc') == 0
  lines = records.read_lines(path)
  assert [line['method'] for line in lines] == ['fm', 'moda_fm']
  assert lines[1]['curve']['alpha/svhn'][-1] == 0.75
  assert lines[1]['commit'] == 'abc'
  assert lines[1]['steps'] == 12  # two epochs of 48 examples, 8 at a time
  assert records.find_values(lines[1], setting) == {'mu_c': 0.5, 'epochs': 2}
  assert lines[1]['config']['data.data_dir'] == 'sets'
  assert str(tmp_path) not in path.read_text()
  written = tables.render(setting, path)
  assert {file.suffix for file in written} == {
    *('.md', '.tex', '.csv', '.png', '.pdf')
  }
  for file in written[:3]:
    assert 'small' in file.read_text()
  assert all(file.stat().st_size for file in written)


@pytest.mark.parametrize(
  ('argument', 'values', 'message'),
  [
    ('digits:mnistm', {}, r'not of the scale small: its network\.width is 1'),
    ('digits:mnistm,width=0.25,samples=100', {}, r'its data\.samples is 100'),
    ('digits:mnistm,width=0.25', {'steps': 7}, 'not finished: step 7 of 180'),
    ('mini:mnistm', {}, "a run of 'mini digits', not of 'digits'"),
  ],
)
def test_runs_that_do_not_belong_are_refused(
  tmp_path, argument, values, message
):
  path = tmp_path / 'digits_small.jsonl'
  make_by_hand(tmp_path / 'run', argument, **values)
  with pytest.raises(UserError, match=message):
    tables.import_runs(
      find_setting('digits', 'small'), [str(tmp_path / 'run')], path
    )
  assert not path.exists()


def test_a_folder_without_a_run_is_refused(tmp_path):
  with pytest.raises(UserError, match='there is no folder of a run'):
    tables.import_runs(TINY, [str(tmp_path)], tmp_path / 'x.jsonl')


def test_a_run_without_labels_is_refused(tmp_path):
  write_run(tmp_path / 'run', get_config('mini:mnistm'), None)
  with pytest.raises(UserError, match="labels of the target 'mnistm' are not"):
    descriptions.describe_run(tmp_path / 'run', TINY)


def test_several_seeds_side_by_side_are_several_lines(tmp_path):
  accuracies = {f'target/accuracy/seed_{i}': 0.1 * i for i in (3, 4)}
  config = get_config('mini:mnistm,seeds=2,seed=3')
  write_run(tmp_path / 'run', config, 0.35, **accuracies)
  lines = descriptions.describe_run(tmp_path / 'run', TINY)
  assert [(x['seed'], round(x['accuracy'], 3)) for x in lines] == [
    (3, 0.3),
    (4, 0.4),
  ]


@pytest.mark.parametrize('content', ['{"half', '[]', '{}'])
def test_a_file_that_does_not_hold_results_is_refused_and_kept(
  tmp_path, content
):
  path = tmp_path / 'results' / 'digits_tiny.jsonl'
  path.parent.mkdir()
  path.write_text(content)
  trained = Trained()
  with pytest.raises(UserError, match='is not a file of results'):
    train(tmp_path, trained)
  assert not trained.requests
  assert path.read_text() == content


@pytest.mark.slow
def test_a_real_run_from_end_to_end(mini_data_dir, tmp_path, monkeypatch):
  monkeypatch.setenv('TFDS_DATA_DIR', str(mini_data_dir))
  monkeypatch.delenv('XLA_FLAGS')
  requests = make_requests(
    TINY, ['mnistm'], ['source_only'], range(1), tmp_path / 'runs'
  )
  path = tmp_path / 'digits_tiny.jsonl'
  runner.train_missing(requests, path, runner.find_slots(1))
  (line,) = records.read_lines(path)
  assert 0 <= line['accuracy'] <= 1
  assert line['steps'] == 6
  assert line['seconds'] > line['train_seconds']
  config = json.loads((requests[0].folder / 'config.json').read_text())
  assert config['run']['steps'] == 6


def test_the_accuracy_is_that_of_the_evaluation_a_run_has_chosen(tmp_path):
  pairs = ','.join(f'{k}={v}' for k, v in TINY.values.items())
  config = get_config(f'{TINY.config}:mnistm,{pairs},selection=entropy')
  write_run(
    tmp_path / 'run', config, 0.6, **{'selection/effective_classes': 2.0}
  )
  path = tmp_path / 'run' / 'metrics.jsonl'
  lines = [json.loads(line) for line in path.read_text().splitlines()]
  for line, entropy in zip(lines, (0.5, 0.1, 0.3), strict=True):
    line['selection/entropy'] = entropy
  path.write_text(''.join(json.dumps(line) + '\n' for line in lines))
  (found,) = descriptions.describe_run(tmp_path / 'run', TINY)
  assert found['accuracy'] == lines[1]['target/accuracy'] < 0.6
