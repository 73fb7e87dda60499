"""Tiny runs and their pages."""

import base64
import re

import tiny

from moda_jax import report
from moda_jax.training import loop as train


def train_tiny(workdir, domains=None, **values):
  config = tiny.make_run_config(**values)
  domains = domains or tiny.make_domains()
  return train.train(config, workdir, domains, devices=1)


def make_page(tmp_path, domains=None, **values):
  outcome = train_tiny(tmp_path, domains, **values)
  page = report.write_run_page(outcome, tmp_path)
  return outcome, page, page.read_text()


def drop_labels(domains):
  target = domains.target._replace(labels=None)
  return domains._replace(target=target, test=target)


def read_pictures(text):
  """Returns kind and bytes of all pictures in the page, by `alt`."""
  found = re.findall(
    r'<img[^>]* src="data:image/([^;]+);base64,([^"]+)" alt="([^"]*)"', text
  )
  return {alt: (kind, base64.b64decode(data)) for kind, data, alt in found}
