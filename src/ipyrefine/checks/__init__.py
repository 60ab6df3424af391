"""Checks: deterministic tests of a text, each giving `Evidence`."""
