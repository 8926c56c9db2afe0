"""Measures the tables of docs/fidelity.md and its pages: `python -m fidelity --help`.

A table is data: a header, and rows of entries, each a text or a quantity that knows its runs. The
runs of all tables that are asked for are made once, together.
"""
