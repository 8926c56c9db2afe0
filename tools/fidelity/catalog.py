"""All measured parts of the document, paper by paper."""

from __future__ import annotations

from fidelity import (
    claims,
    dpo,
    hops,
    left_open,
    loc,
    others,
    rivals,
    silo,
    ssp,
    steady,
    write_sets,
)
from fidelity.tables import Facts, Table

ALL: tuple[Table | Facts, ...] = (
    *claims.PARTS,
    *silo.PARTS,
    *rivals.PARTS,
    *steady.PARTS,
    *left_open.PARTS,
    *write_sets.PARTS,
    others.BATTERIES,
    *loc.PARTS,
    *hops.PARTS,
    *dpo.PARTS,
    others.WRITE_SETS,
    *ssp.PARTS,
    *others.LOOP,
)
