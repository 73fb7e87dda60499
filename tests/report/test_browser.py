"""The page in a browser: no errors, no requests, pictures fit a phone."""

import contextlib
import functools
import http.server
import json
import re
import shutil
import subprocess
import threading

import pytest
import tiny
from made_up_comparison import RUNS, make_compared

from moda_jax import report
from moda_jax.report import choice_page
from moda_jax.training import loop

_NAMES = ('chromium', 'chromium-browser', 'google-chrome')
BROWSER = next(filter(None, map(shutil.which, _NAMES)), None)
PHONE = 375  # CSS pixels
# Chromium's windows are wider than a phone; a frame can be as narrow.
FRAME = """<!doctype html><link rel="icon" href="data:,">
<iframe src="index.html" style="border:0;width:%dpx;height:800px"></iframe>
<script>
const frame = document.querySelector('iframe');
frame.onload = () => {
  const page = frame.contentDocument;
  for (const part of page.querySelectorAll('details')) part.open = true;
  const images = [...page.images];
  const found = {
    width: page.documentElement.scrollWidth,
    images: images.map(image => ({
      alt: image.alt,
      pixels: image.naturalWidth,
      left: image.getBoundingClientRect().left,
      right: image.getBoundingClientRect().right,
    })),
    requests: frame.contentWindow.performance.getEntriesByType('resource')
      .map(entry => entry.name).filter(name => !name.startsWith('data:')),
  };
  const shown = document.createElement('pre');
  shown.textContent = 'FOUND' + JSON.stringify(found) + 'END';
  document.body.append(shown);
};
</script>"""


class Handler(http.server.SimpleHTTPRequestHandler):
  requests: list[str]

  def log_message(self, format, *args):
    self.requests.append(self.path)


@contextlib.contextmanager
def serve(folder):
  handler = type('Counting', (Handler,), {'requests': []})
  server = http.server.ThreadingHTTPServer(
    ('127.0.0.1', 0), functools.partial(handler, directory=folder)
  )
  thread = threading.Thread(target=server.serve_forever)
  thread.start()
  try:
    yield server.server_address[1], handler.requests
  finally:
    server.shutdown()
    thread.join()
    server.server_close()


def look_at(folder):
  """Returns what a browser finds in a folder's page, and its complaints."""
  (folder / 'frame.html').write_text(FRAME % PHONE)
  with serve(folder) as (port, requests):
    ended = subprocess.run(
      [
        BROWSER,
        '--headless',
        '--no-sandbox',
        '--disable-gpu',
        '--disable-dev-shm-usage',
        f'--user-data-dir={folder / "profile"}',
        '--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1',
        '--enable-logging=stderr',
        '--virtual-time-budget=30000',
        '--dump-dom',
        f'http://127.0.0.1:{port}/frame.html',
      ],
      capture_output=True,
      text=True,
      timeout=300,
    )
  found = re.search('FOUND(.*)END</pre>', ended.stdout)
  assert found, ended.stdout[-500:] + ended.stderr[-500:]
  complaints = [line for line in ended.stderr.splitlines() if 'CONSOLE' in line]
  return json.loads(found[1]), complaints, requests


needs_browser = pytest.mark.skipif(
  BROWSER is None, reason='Chromium is not installed'
)


@pytest.mark.slow
@needs_browser
def test_a_phone_shows_the_page_without_asking_anyone(tmp_path):
  runs = {}
  for method in ('source_only', 'moda_fm'):
    config = tiny.make_run_config(method=method)
    workdir = tmp_path / method
    outcome = loop.train(config, workdir, tiny.make_domains(), devices=1)
    runs[method] = (outcome, workdir)
  page = report.write_page(tmp_path / 'report', runs)
  found, complaints, requests = look_at(page.parent)
  assert complaints == []
  assert requests == ['/frame.html', '/index.html']
  assert found['requests'] == []
  assert found['width'] <= PHONE
  assert len(found['images']) > 30
  for image in found['images']:
    assert image['pixels'] > 0, image['alt']
    assert image['left'] >= 0, image['alt']
    assert image['left'] + 20 < image['right'] <= PHONE, image['alt']


@pytest.mark.slow
@needs_browser
def test_a_phone_shows_a_comparison(tmp_path):
  choice_page.write_page(make_compared(RUNS), tmp_path)
  found, complaints, requests = look_at(tmp_path)
  assert complaints == []
  assert requests == ['/frame.html', '/index.html']
  assert found['width'] <= PHONE
  assert len(found['images']) > 20
  for image in found['images']:
    assert 0 <= image['left'] < image['right'] <= PHONE, image['alt']


@pytest.mark.slow
@needs_browser
def test_what_the_test_looks_for_is_found(tmp_path):
  (tmp_path / 'index.html').write_text(
    '<link rel="icon" href="data:,"><div style="width:600px">wide</div>'
    '<img src="missing.png" alt="a"><script>undefined_name()</script>'
  )
  found, complaints, requests = look_at(tmp_path)
  assert any('undefined_name' in line for line in complaints)
  assert '/missing.png' in requests
  assert found['width'] > PHONE
  assert [image['pixels'] for image in found['images']] == [0]
