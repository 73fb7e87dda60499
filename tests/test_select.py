"""The command that chooses among runs without target labels."""

import json
import shutil
import types

import numpy as np
import pytest

import moda_jax
from configs import arrays
from moda_jax import select
from moda_jax.errors import UserError
from moda_jax.selection.certainty import mean_entropy
from moda_jax.selection.left_out import read_search
from moda_jax.selection.mixtures import draw_pairs, mix
from moda_jax.selection.ranking import Candidate, rank
from moda_jax.training import loop
from moda_jax.training.candidates import RunCandidate, open_candidates

RUNS = {
  'plain': 'method=source_only',
  'held': 'method=source_only,seed=1,holdout=0.2,samples=40',
  'dann': 'method=dann_ms,selection=entropy,eval_every=2',
}


def write_domains(folder, names='abt', classes=3):
  rng = np.random.default_rng(0)
  for i, name in enumerate(names):
    labels = np.arange(60) % classes
    features = rng.normal(size=(60, 6)) + labels[:, None] + 0.3 * i
    np.savez(folder / f'{name}.npz', features=features, labels=labels)


def train(folder, workdir, argument, target='t'):
  quick = 'steps=4,batch_size=8,width=0.05,evaluate_on=target'
  config = arrays.get_config(f'{folder},target={target},{quick},{argument}')
  return loop.train(config, workdir, devices=1)


@pytest.fixture(scope='module')
def runs(tmp_path_factory):
  """Returns the folders of three runs of one target, and of another one."""
  root = tmp_path_factory.mktemp('select')
  (root / 'data').mkdir()
  write_domains(root / 'data')
  for name, argument in RUNS.items():
    train(root / 'data', root / name, argument)
  train(root / 'data', root / 'other', RUNS['plain'], target='b')
  return root


@pytest.mark.slow
def test_runs_are_ranked_by_their_predictions(runs, tmp_path, capsys):
  paths = [str(runs / name) for name in RUNS]
  select.main([*paths, f'--output={tmp_path / "ranking.json"}'])
  shown = capsys.readouterr().out
  found = json.loads((tmp_path / 'ranking.json').read_text())
  with np.load(runs / 'data' / 't.npz') as file:
    features = file['features'].astype(np.float32)
  predicted = [moda_jax.load(path).predict(features) for path in paths]
  expected = rank(
    [
      Candidate(path, {'entropy': mean_entropy(p)}, p)
      for path, p in zip(paths, predicted, strict=True)
    ]
  )
  assert found['chosen'] == expected.chosen
  for name in ('agreement', 'entropy'):
    assert found['scores'][name] == pytest.approx(
      expected.scores[name], rel=1e-6
    )
    assert found['orders'][name] == list(expected.orders[name])
  for name in ('source_accuracy', 'weighted_accuracy', 'dev_risk'):
    assert list(found['scores'][name]) == [str(runs / 'held')]
  assert set(found['scores']['class_ami']) == set(paths)
  for path, p in zip(paths, predicted, strict=True):
    classes = p.argmax(axis=1)
    pairs = draw_pairs(classes)
    mixed = mix(*(features[own] for own in pairs))
    right = (
      moda_jax.load(path).predict(mixed).argmax(axis=1) == classes[pairs[0]]
    )
    same = classes[pairs.first] == classes[pairs.second]
    expected_score = (right[same].mean() + right[~same].mean()) / 2
    assert found['scores']['mixval'][path] == pytest.approx(expected_score)
  assert f'chosen by agreement: {expected.chosen}' in shown
  assert 'oracle (target labels)' in shown


def make_run(name, sources):
  """Returns a run as a candidate, of which nothing has been trained."""
  config = types.SimpleNamespace(data=types.SimpleNamespace(sources=sources))
  model = types.SimpleNamespace(
    config=config,
    inputs=types.SimpleNamespace(classes=('x', 'y')),
    method=types.SimpleNamespace(caution=''),
  )
  scores = {'entropy': len(name) / 10, 'source_accuracy': 0.5}
  trained = types.SimpleNamespace(model=model)
  return RunCandidate(trained, Candidate(name, scores), [], None)


def test_criteria_of_different_sources_are_warned_of():
  same = [make_run('one', ('a', 'b')), make_run('other', ('b', 'a'))]
  shown = select.describe(same, rank([run.candidate for run in same]))
  assert 'different sources' not in shown
  assert '0.3 (1)' in shown
  assert '1 for the best' in shown
  runs = [same[0], make_run('other', ('a',))]
  shown = select.describe(runs, rank([run.candidate for run in runs]))
  assert 'different sources, and source_accuracy read examples' in shown


def write_search(path, **changed):
  trials = [
    {'values': {'mu_s': 0.25, 'epochs': 3}, 'mean_accuracy': 0.7},
    {'values': {'mu_s': 0.125, 'epochs': 3}, 'mean_accuracy': 0.8},
    {'values': {'mu_s': 0.5, 'epochs': 3}, 'mean_accuracy': 0.9},
  ]
  found = {'method': 'moda_fm', 'target_never_read': 't', 'trials': trials}
  path.write_text(json.dumps(found | changed))
  return path


def test_runs_are_ranked_by_what_a_search_found_for_their_values(tmp_path):
  write_domains(tmp_path)
  search = read_search(write_search(tmp_path / 'values.json'))
  found = {}
  for mu_s in ('0.125', '0.25', '0.2500001', '0.3'):
    argument = f'{tmp_path},target=t,method=moda_fm,mu_s={mu_s},epochs=3'
    found[mu_s] = search.score(arrays.get_config(argument))
  assert found == {'0.125': 0.8, '0.25': 0.7, '0.2500001': 0.7, '0.3': None}
  other = arrays.get_config(f'{tmp_path},target=b,mu_s=0.25,epochs=3')
  assert search.score(other) is None
  runs = [
    Candidate(name, {'left_out': score, 'entropy': entropy})
    for name, score, entropy in (('x', 0.7, 0.1), ('y', 0.8, 0.9))
  ]
  assert rank(runs).chosen == 'x'
  assert rank(runs, 'left_out').chosen == 'y'
  with pytest.raises(UserError, match="'left_out' is not known of all of x, z"):
    rank([runs[0], Candidate('z', {'entropy': 1.0})], 'left_out')


@pytest.mark.parametrize(
  ('text', 'message'),
  [
    ('', 'JSONDecodeError'),
    ('{"method": "fm"}', "KeyError: 'trials'"),
    ('[]', 'TypeError'),
    (
      '{"method": "fm", "target_never_read": "t", "trials": []}',
      'no trial that drew a value',
    ),
  ],
)
def test_what_is_no_search_is_refused(tmp_path, text, message):
  path = tmp_path / 'values.json'
  path.write_text(text)
  with pytest.raises(UserError, match=message):
    read_search(path)
  with pytest.raises(UserError, match='FileNotFoundError'):
    read_search(tmp_path / 'none.json')


@pytest.mark.slow
def test_the_command_shows_what_a_search_found(runs, tmp_path, capsys):
  trial = {'values': {'batch_size': 8}, 'mean_accuracy': 0.75}
  path = write_search(
    tmp_path / 'values.json', method='source_only', trials=[trial]
  )
  paths = [str(runs / name) for name in ('plain', 'held')]
  select.main([*paths, f'--search={path}', '--criterion=left_out'])
  assert 'chosen by left_out' in capsys.readouterr().out


@pytest.mark.slow
def test_evaluations_over_time_are_shown_with_the_step_taken(runs, capsys):
  select.main([str(runs / 'dann')])
  shown = capsys.readouterr().out
  step = int(moda_jax.load(runs / 'dann')._state.step)
  assert f'which is taken at step {step}' in shown
  assert 'is the only candidate' in shown


@pytest.mark.slow
def test_without_its_data_a_run_is_ranked_by_what_it_logged(
  runs, tmp_path, capsys, caplog
):
  for name in ('plain', 'dann'):
    shutil.copytree(runs / name, tmp_path / name)
    path = tmp_path / name / 'config.json'
    text = path.read_text().replace(str(runs / 'data'), '/not/there')
    path.write_text(text)
  found = open_candidates([tmp_path / 'plain', tmp_path / 'dann'])
  assert [run.candidate.probabilities for run in found] == [None, None]
  assert 'ranked by what was logged alone' in caplog.text
  ranking = rank([run.candidate for run in found])
  assert ranking.criterion == 'entropy'
  for run in found:
    step = int(run.trained.state.step)
    (line,) = (x for x in run.evaluations if x['step'] == step)
    assert run.candidate.scores['entropy'] == line['selection/entropy']


@pytest.mark.slow
def test_runs_of_other_targets_are_refused_with_both_named(runs):
  with pytest.raises(UserError, match=r"plain has the target 't' .* 'b'"):
    select.main([str(runs / 'plain'), str(runs / 'other')])


def test_bad_arguments_are_refused(tmp_path):
  with pytest.raises(UserError, match='given twice'):
    select.main(['runs/a', 'runs/a/'])
  with pytest.raises(UserError, match='does not hold a run'):
    select.main([str(tmp_path)])
  with pytest.raises(UserError, match="no criterion 'accuracy'"):
    select.main([str(tmp_path), '--criterion=accuracy'])
