"""The command that chooses among runs without target labels."""

import json
import re
import shutil
import types

import numpy as np
import pytest

import moda_jax
from configs import arrays
from moda_jax import select
from moda_jax.data.load import open_domains
from moda_jax.errors import UserError
from moda_jax.selection.certainty import mean_entropy
from moda_jax.selection.ranking import Candidate, rank
from moda_jax.training import fitting, loop
from moda_jax.training.candidates import RunCandidate, open_candidates
from moda_jax.training.left_out import read_search
from moda_jax.training.meaning import describe_meaning
from moda_jax.training.options import base_config

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
  dann = found['evaluations'][paths[2]]
  assert sorted(dann['entropy']) == [2, 4]
  assert f'chosen by agreement: {expected.chosen}' in shown
  assert 'oracle (target labels)' in shown


def make_run(name, sources):
  """Returns a run as a candidate, of which nothing has been trained."""
  config = base_config()
  config.data.sources, config.run.seed = sources, len(name)
  config.network.name = 'mlp'
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


TRIALS = [
  {'values': {'mu_s': 0.25, 'epochs': 3}, 'mean_accuracy': 0.7},
  {'values': {'mu_s': 0.125, 'epochs': 3}, 'mean_accuracy': 0.8},
]


def write_search(path, config, trials=TRIALS):
  found = {'meaning': describe_meaning(config), 'trials': trials}
  path.write_text(json.dumps(found))
  return path


def test_runs_are_ranked_by_what_a_search_found_for_their_values(tmp_path):
  write_domains(tmp_path)

  def make(argument, target='t'):
    return arrays.get_config(f'{tmp_path},target={target},{argument}')

  base = make('method=moda_fm')
  search = read_search(write_search(tmp_path / 'values.json', base))
  found = {
    argument: search.find_accuracy(make(argument))[0]
    for argument in (
      'method=moda_fm,mu_s=0.125,epochs=3',
      'method=moda,target_term=fixmatch,mu_s=0.25,epochs=3,seed=5',
      'method=moda_fm,mu_s=0.2500001,epochs=3,eval_every=7',
    )
  }
  assert list(found.values()) == [0.8, 0.7, 0.7]
  for argument, target, why in (
    ('method=moda_fm,mu_s=0.3,epochs=3', 't', 'no trial has its epochs, mu_s'),
    ('method=moda_fm,mu_s=0.25,epochs=3', 'b', 'data.sources, data.target'),
    ('method=moda_fm,mu_s=0.25,epochs=3,mu_c=0.7', 't', 'objective.mu_c'),
    ('method=moda_fm,predictor=experts,mu_s=0.25', 't', 'objective.parts'),
    ('method=moda_fm,width=0.3,mu_s=0.25,epochs=3', 't', 'network.width'),
  ):
    accuracy, reason = search.find_accuracy(make(argument, target))
    assert accuracy is None
    assert why in reason


def test_a_search_counts_for_what_the_data_has_decided(tmp_path):
  write_domains(tmp_path)
  argument = f'{tmp_path},target=t,method=moda_fm,mu_s=0.25,epochs=3'
  config = arrays.get_config(f'{argument},network=digits')
  search = read_search(write_search(tmp_path / 'values.json', config))
  fitted = fitting.fit_network(config, open_domains(config))
  assert (fitted.network.init, fitted.data.image_size) == ('he', 32)
  assert search.find_accuracy(fitted) == search.find_accuracy(config)
  assert search.find_accuracy(fitted)[0] == 0.7


def test_left_out_sources_choose_where_they_are_asked():
  runs = [
    Candidate(name, {'left_out': score, 'entropy': entropy})
    for name, score, entropy in (('x', 0.7, 0.1), ('y', 0.8, 0.9))
  ]
  assert rank(runs).chosen == 'x'
  assert rank(runs, 'left_out').chosen == 'y'
  with pytest.raises(UserError, match="'left_out' is not known of all of x, z"):
    rank([runs[0], Candidate('z', {'entropy': 1.0})], 'left_out')


@pytest.mark.parametrize(
  ('found', 'message'),
  [
    ([], "with 'trials' and 'meaning'"),
    ({'trials': TRIALS}, "with 'trials' and 'meaning'"),
    ({'meaning': {}, 'trials': []}, 'no trial that drew a value'),
    ({'meaning': {}, 'trials': [3]}, "trial 0 must have 'values'"),
    (
      {'meaning': {}, 'trials': [TRIALS[0], {'values': {'mu_s': None}}]},
      "trial 1 must have 'values'",
    ),
    (
      {'meaning': {}, 'trials': [TRIALS[0] | {'mean_accuracy': float('nan')}]},
      "'mean_accuracy' = nan must be within",
    ),
    (
      {'meaning': {}, 'trials': [TRIALS[0] | {'mean_accuracy': 70}]},
      "'mean_accuracy' = 70 must be within",
    ),
  ],
)
def test_what_is_no_search_is_refused(tmp_path, found, message):
  path = tmp_path / 'values.json'
  path.write_text(json.dumps(found))
  with pytest.raises(UserError, match=re.escape(message)):
    read_search(path)
  path.write_text('{')
  for name in ('values.json', 'none.json'):
    with pytest.raises(UserError, match='cannot be read'):
      read_search(tmp_path / name)


def test_a_word_that_a_number_should_be_is_no_match(tmp_path):
  write_domains(tmp_path)
  config = arrays.get_config(f'{tmp_path},target=t,method=moda_fm')
  trials = [{'values': {'mu_s': 'much'}, 'mean_accuracy': 0.5}]
  path = write_search(tmp_path / 'values.json', config, trials)
  assert read_search(path).find_accuracy(config)[0] is None


@pytest.mark.slow
def test_the_command_shows_what_a_search_found(runs, tmp_path, capsys):
  config = moda_jax.load(runs / 'plain').config
  trials = [{'values': {'batch_size': 8}, 'mean_accuracy': 0.75}]
  path = write_search(tmp_path / 'values.json', config, trials)
  twin = tmp_path / 'twin'
  shutil.copytree(runs / 'plain', twin)
  names = [str(runs / 'plain'), str(twin)]
  select.main([*names, f'--search={path}', '--criterion=left_out'])
  shown = capsys.readouterr().out
  assert 'chosen by left_out' in shown
  assert f'{names[0]} and {names[1]} are runs of the same config' in shown
  with pytest.raises(UserError, match='left_out'):
    select.main(
      [*names, str(runs / 'dann'), f'--search={path}', '--criterion=left_out']
    )
  assert 'objective.parts differ from the search' in capsys.readouterr().out


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
