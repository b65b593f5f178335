"""Rows: as many as asked, within the domain, near the model's counts, and spread evenly."""

from __future__ import annotations

import numpy as np
from support.small_domains import fit_pairs, random_joint, small_domain

from incrowd.anonymize.synthetic.rows import draw_rows


def test_counts_are_near_those_of_the_model() -> None:
    domain = small_domain()
    model = fit_pairs(
        domain, random_joint(domain, 2), 5_000.0, [(0, 1), (1, 2), (2, 3)], [0, 1, 0, 1]
    )
    rows = draw_rows(model, 5_000, np.random.default_rng(1))
    assert rows.shape == (5_000, 4)
    for column, model_column in enumerate(domain.columns):
        assert rows[:, column].min() >= 0
        assert rows[:, column].max() < model_column.sizes[0]
        counts = np.bincount(rows[:, column], minlength=model_column.sizes[0])
        expected = model.table((column,), (0,)) * 5_000
        assert np.abs(counts - expected).max() <= 1 + 1e-6
    for pair, levels in (((0, 1), (0, 1)), ((1, 2), (1, 0)), ((2, 3), (0, 1))):
        table = model.table(pair, levels)
        groups = [domain.columns[x].groups[y] for x, y in zip(pair, levels, strict=True)]
        seen = np.zeros(table.shape)
        np.add.at(seen, (groups[0][rows[:, pair[0]]], groups[1][rows[:, pair[1]]]), 1)
        # Independent draws would be off by about 0.4 sqrt(5,000 x cells): 80 for 9 cells.
        assert np.abs(seen - table * 5_000).sum() / 2 < 15


def test_a_value_of_no_probability_is_never_drawn() -> None:
    domain = small_domain()
    law = random_joint(domain, 2)
    law[1, :, 2, :] = 0
    model = fit_pairs(domain, law / law.sum(), 800.0, [(0, 2)], [0, 1, 0, 2])
    marginal = np.array(model.marginals[model.structure.home((0, 2))])
    marginal[1, 2] = 0
    home = model.structure.home((0, 2))
    exact = [marginal if at == home else table for at, table in enumerate(model.marginals)]
    rows = draw_rows(
        type(model)(model.structure, exact, model.shares, 800.0), 800, np.random.default_rng(3)
    )
    assert not ((rows[:, 0] == 1) & (rows[:, 2] == 2)).any()


def test_one_row_can_be_drawn() -> None:
    domain = small_domain()
    model = fit_pairs(domain, random_joint(domain, 5), 100.0, [(0, 1)], [0, 1, 0, 2])
    assert draw_rows(model, 1, np.random.default_rng(0)).shape == (1, 4)
