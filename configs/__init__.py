"""Config files of the experiments; installed as `moda_jax.configs`."""
