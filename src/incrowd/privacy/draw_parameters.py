"""How a table is drawn: a sample or noisy counts, and what certificates state of either."""

from __future__ import annotations

from typing import TypeAlias

from incrowd.privacy.events import Coin, Event, GaussianCounts, GeometricCounts, SafeRelease

CountsEvent: TypeAlias = GeometricCounts | GaussianCounts
Draw: TypeAlias = SafeRelease | CountsEvent

ROWS_PER_PERSON = "rows_per_person"  # a parameter of certificates


def list_draw_parameters(draw: Draw) -> dict[str, float | str]:
    """Return what certificates state of how a table was drawn."""
    match draw:
        case SafeRelease(k, beta):
            return {"k": float(k), "beta": beta}
        case GeometricCounts(r, epsilon):
            return {"noise": "geometric", "r": float(r), "noise_epsilon": epsilon}
        case GaussianCounts(r, variance):
            return {"noise": "gaussian", "r": float(r), "noise_variance": variance}


def list_coin_parameters(event: Event) -> dict[str, float | str]:
    """Return what certificates state of the coin between two bounds; nothing if there is none."""
    match event:
        case Coin(_, GeometricCounts(r, _), chance):
            return {"coin": chance, "coin_r": float(r)}
    return {}
