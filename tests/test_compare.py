"""One command that trains several methods and chooses one."""

import csv
import json
import re

import pytest
import tiny
from PIL import Image

from configs import folder
from moda_jax.errors import NonFiniteError, UserError
from moda_jax.report import comparing
from moda_jax.training import loop, predictions, same_budget
from moda_jax.training.run_folder import RunFolder, read_metrics

QUICK = 'network=tiny images,steps=4,batch_size=8'


def write_folders(root, domains='abct', flat=False):
  made = tiny.make_domains()
  for domain in (*made.sources, made.target):
    for i, (pixels, label) in enumerate(
      zip(domain.inputs, domain.labels, strict=True)
    ):
      place = root / domain.name / f'class {label}'
      if flat and domain.name == 't':
        place = root / 't'
      place.mkdir(parents=True, exist_ok=True)
      if domain.name in domains:
        Image.fromarray(pixels).save(place / f'{i:02d}.png')
  return root


def get_config(root, more=''):
  return folder.get_config(f'{root},target=t,{QUICK}{more}')


def read(path):
  with path.open(newline='') as file:
    return list(csv.DictReader(file))


@pytest.mark.slow
def test_methods_are_trained_compared_and_resumed(tmp_path, monkeypatch):
  config = get_config(write_folders(tmp_path / 'data'))
  runs = tmp_path / 'runs'
  page, choice = comparing.compare(config, runs, ['moda'])
  assert page == runs / 'index.html'
  text = page.read_text()
  for method in ('source_only', 'moda'):
    assert (runs / method / 'report' / 'index.html').is_file()
    lines = read_metrics(runs / method)
    assert lines[-1]['step'] == 4
  assert not re.findall(r'(?:src|url)\s*[=(]\s*["\']?(?!data:|")', text)
  own = config.copy_and_resolve_references()
  own.objective.method = choice.name
  own = same_budget.plan(own, ['moda']).configs[choice.name]
  path = predictions.write_predictions(own, runs / choice.name)
  assert read(path) == read(runs / 'predictions.csv')
  assert len(read(path)) == 32
  found = json.loads((runs / 'comparison.json').read_text())
  assert found['chosen'] == choice.name
  accuracy = read_metrics(runs / 'moda')[-1]['target/accuracy']
  assert found['runs']['moda']['oracle_accuracy'] == pytest.approx(accuracy)

  def refuse(*_):
    raise AssertionError('a finished run is trained again')

  monkeypatch.setattr(RunFolder, 'write_metrics', refuse)
  monkeypatch.setattr(comparing, 'write_run_page', refuse)
  again, other = comparing.compare(config, runs, ['moda'])
  assert other.name == choice.name
  assert json.loads((runs / 'comparison.json').read_text()) == found
  assert again.read_text() == text


@pytest.mark.slow
def test_target_labels_train_choose_and_are_not_tested_on(tmp_path):
  root = write_folders(tmp_path / 'data', flat=True)
  labels = tiny.make_domains().target.labels
  path = tmp_path / 'labels.csv'
  rows = [f'{i:02d}.png,class {labels[i]}\n' for i in range(8)]
  path.write_text('example,label\n' + ''.join(rows))
  config = get_config(root, f',target_labels={path}')
  runs = tmp_path / 'runs'
  page, choice = comparing.compare(config, runs, ['moda'], leave_one_out=True)
  assert '8 labels of the target were used' in page.read_text()
  assert 'Labels of the target were used' in ' '.join(choice.reasons)
  assert 'Each source left out' in page.read_text()
  for name in ('moda', 'source_only', 'without_a', 'without_b', 'without_c'):
    assert 'class/t_labelled' in read_metrics(runs / name)[-1] or (
      name == 'source_only'
    )
    config = json.loads((runs / name / 'config.json').read_text())
    assert 't_labelled' in config['data']['sources']
    assert config['data']['target_labels'] == str(path)
    own = (runs / name / 'report' / 'index.html').read_text()
    assert 'Labels of the target are trained on' in own
  found = json.loads((runs / 'comparison.json').read_text())
  assert found['target_labels_used'] == 8
  assert found['runs']['moda']['labelled'] == 4
  assert set(found['left_out']) == {
    'all sources',
    'without a',
    'without b',
    'without c',
  }
  # Which are of other examples where a source is left out.
  assert 'source_accuracy' in found['runs']['moda']['criteria']
  for run in found['left_out'].values():
    assert 'entropy' in run['criteria']
    assert not {'source_accuracy', 'dev_risk'} & set(run['criteria'])
  asked = {row['example'] for row in read(runs / 'to_label.csv')}
  assert not asked & {f'{i:02d}.png' for i in range(8)}
  assert len(read(runs / 'predictions.csv')) == 32


@pytest.mark.slow
def test_a_run_that_does_not_finish_is_refused(tmp_path, monkeypatch):
  train = loop.train

  def fail(config, *args, **kwargs):
    if config.objective.method == 'fm':
      raise NonFiniteError('the loss is not finite at step 2')
    return train(config, *args, **kwargs)

  monkeypatch.setattr(loop, 'train', fail)
  config = get_config(write_folders(tmp_path / 'data'))
  _, choice = comparing.compare(config, tmp_path / 'runs', ['fm', 'moda'])
  assert choice.refused['fm'] == (
    'it has not finished: the loss is not finite at step 2'
  )
  text = (tmp_path / 'runs' / 'index.html').read_text()
  assert 'fm is refused' in text


def test_all_methods_have_one_length(tmp_path):
  """Though an epoch of a method that reads no target may be shorter."""
  root = write_folders(tmp_path / 'data')
  config = get_config(root)
  config.run.steps, config.run.epochs = 0, 3
  config.run.checkpoint_every = 0
  plan = same_budget.plan(config, ['fm', 'moda', 'fm'])
  assert list(plan.configs) == ['source_only', 'fm', 'moda']
  lengths = {c.run.steps for c in plan.configs.values()}
  assert lengths == {15}  # 3 · ⌈40 / 8⌉
  part = plan.without('fm', 'b')
  assert part.configs['fm'].data.sources == ('a', 'c')
  assert [s.name for s in part.whole.sources] == ['a', 'c']
  assert config.run.epochs == 3


@pytest.mark.parametrize(
  ('methods', 'message'),
  [
    (['modo'], "'modo' is unknown; allowed are source_only"),
    (['moda', 'supervised'], "'supervised' is trained on all labels"),
    (['moda_fm:target_term=fixmach'], "'fixmach' is unknown; allowed are"),
    (['moda_fm:target_term'], "'target_term' must be key=value, as in"),
    (['moda_fm:tern=mcc'], "there is no value 'tern' in the config"),
    (['moda_fm:mu_c=x'], "'x' is not of type float"),
    (['moda_fm:tau=3'], 'config.objective.tau = 3.0 is not allowed'),
    (['fm:mu_d=0.1'], 'config.objective.mu_d'),
    (['fm:epochs=3'], "'epochs' cannot differ between methods"),
    (['fm:batch_size=3'], "'batch_size' cannot differ between methods"),
    (['fm:method=moda'], "'method' cannot differ between methods"),
    (['supervised:weights=darn'], "'supervised' is trained on all labels"),
    ([], 'source_only alone'),
    (['source_only'], 'source_only alone'),
    (
      ['moda_fm', 'moda:target_term=fixmatch'],
      "'moda_fm' and 'moda:target_term=fixmatch' are the same parts",
    ),
    (
      ['moda:weights=floored:mu_s=0.2', 'moda:weights=softmax+floored'],
      'are the same parts at the same values',
    ),
    (
      ['fm:target_term=mcc+fixmatch', 'fm:target_term=fixmatch+mcc'],
      'are the same parts at the same values',
    ),
    (['dann_ms', 'dann_ms:randaugment_n=1'], "'dann_ms' has no strong view"),
    (['fm', 'fm:learned_decay=0.5'], "strong='randaugment' learns nothing"),
  ],
)
def test_methods_that_cannot_be_compared(tmp_path, methods, message):
  config = get_config(write_folders(tmp_path / 'data'))
  with pytest.raises(UserError, match=re.escape(message)):
    comparing.compare(config, tmp_path / 'runs', methods)
  assert not (tmp_path / 'runs').exists()


def test_other_mistakes_come_before_training(tmp_path):
  config = get_config(write_folders(tmp_path / 'data'))
  config.run.seeds = 2
  with pytest.raises(UserError, match='seeds = 2'):
    comparing.compare(config, tmp_path / 'runs', ['fm'])
  config.run.seeds = 1
  config.objective.target_term = 'mcc'
  with pytest.raises(UserError, match="target_term = 'mcc': all methods"):
    comparing.compare(config, tmp_path / 'runs', ['fm'])
  config.objective.target_term = ''
  config.data.sources = ('a',)
  with pytest.raises(UserError, match='at least 2 sources; there is 1'):
    comparing.compare(config, tmp_path / 'runs', ['fm'], leave_one_out=True)
  config.data.target_labels = 'none.csv'
  with pytest.raises(UserError, match=r'none\.csv'):
    comparing.compare(config, tmp_path / 'runs', ['fm'])
  assert not (tmp_path / 'runs').exists()


def test_compositions_are_compared_under_one_budget(tmp_path):
  config = get_config(write_folders(tmp_path / 'data'))
  mixed = 'moda_fm:target_term=fixmatch+mcc:mcc_weight=0.5'
  plan = same_budget.plan(config, ['fm', mixed, 'fm:learning_rate=0.1'])
  assert list(plan.configs) == [
    'source_only',
    'fm',
    mixed,
    'fm:learning_rate=0.1',
  ]
  base, own = plan.configs['fm'], plan.configs[mixed]
  assert own.objective.target_term == 'fixmatch+mcc'
  assert (own.objective.mcc_weight, own.objective.method) == (0.5, 'moda_fm')
  assert plan.configs['fm:learning_rate=0.1'].optimizer.learning_rate == 0.1
  assert base.objective.target_term == ''
  for section in ('data', 'network', 'run'):
    assert own[section] == base[section]


@pytest.mark.slow
def test_a_composition_has_a_folder_that_the_page_links_to(tmp_path):
  config = get_config(write_folders(tmp_path / 'data'))
  runs, name = tmp_path / 'runs', 'fm:target_term=mcc'
  page, choice = comparing.compare(config, runs, [name])
  folders = {path.parent.name for path in runs.glob('*/config.json')}
  assert folders == {'source_only', 'fm,target_term=mcc'}
  assert 'href="fm,target_term=mcc/report/index.html"' in page.read_text()
  found = json.loads((runs / 'comparison.json').read_text())
  assert set(found['runs']) == {'source_only', name}
  assert choice.name in found['runs']
