"""Benchmarks of the lab itself."""
