"""Tests of pg_fast_timing on real servers."""
