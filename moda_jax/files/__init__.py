"""Reads and writes of untrusted or half-written files."""
