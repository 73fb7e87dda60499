"""Unsupervised multi-source domain adaptation in JAX: MODA-FM and peers."""

import os

# Before anything imports TensorFlow, which serves input pipelines only.
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
os.environ.setdefault('TF_ENABLE_ONEDNN_OPTS', '0')  # logs at start

__version__ = '0.1.0'
