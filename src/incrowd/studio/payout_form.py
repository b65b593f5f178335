"""Costs and benefits of a release, as a form states them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from incrowd.errors import IncrowdError
from incrowd.spec.file import SpecFile
from incrowd.spec.release import KAnonymitySpec
from incrowd.studio.number_form import normalize_number
from incrowd.studio.spec_edits import Changes

AMOUNTS = {  # the entries of a payout, with what a page calls them
    "benefit": ("Benefit", "what you gain from a row that is published unchanged"),
    "publisher_loss": ("Your loss", "what a re-identified row costs you, such as a fine"),
    "attacker_gain": ("Attacker's gain", "what a re-identified row gains an attacker"),
    "attack_cost": ("Cost of an attack", "what an attack on a row costs the attacker"),
}
ATTACKERS = {
    "": "who is in the table (prosecutor)",
    "journalist": "the population of which the table is a sample (journalist)",
}


def read_payout(file: SpecFile) -> dict[str, str] | None:
    """Return the amounts of a spec as one would type them; None where no search weighs them."""
    release = file.spec.release
    if not isinstance(release, KAnonymitySpec) or release.algorithm not in (None, "ola"):
        return None
    payout = release.payout
    if payout is None:
        return dict.fromkeys((*AMOUNTS, "attacker"), "")
    amounts = {name: f"{getattr(payout, name):.12g}" for name in AMOUNTS}
    return amounts | {"attacker": payout.attacker if payout.attacker == "journalist" else ""}


def set_payout(file: SpecFile, form: Mapping[str, str]) -> Changes:
    """Set the costs and benefits of a release, which take the place of a measure of loss.

    Without any amount they go.

    Raises:
        IncrowdError: An amount is missing or no number, or the search weighs no amounts.
    """
    release = file.spec.release
    if read_payout(file) is None:
        raise IncrowdError(
            "Costs and benefits need k-anonymity with the algorithm OLA. Choose both on the "
            "Privacy page."
        )
    assert isinstance(release, KAnonymitySpec)
    texts = {name: form.get(name, "").strip() for name in AMOUNTS}
    if not any(texts.values()):
        return {("release", "payout"): None}
    missing = [AMOUNTS[name][0] for name, text in texts.items() if not text]
    if missing:
        raise IncrowdError(
            f"Enter all four amounts, or none. Missing: {', '.join(missing)}. An amount may be 0."
        )
    payout: dict[str, Any] = {name: _parse_amount(name, text) for name, text in texts.items()}
    if payout["benefit"] == 0:
        raise IncrowdError("The benefit of a published row must be above 0.")
    if form.get("attacker") == "journalist":
        if release.population is None:
            raise IncrowdError(
                "An attacker who knows the population needs its size. Enter it under k on the "
                "Privacy page, or choose the prosecutor."
            )
        payout["attacker"] = "journalist"
    return {("release", "loss"): None, ("release", "payout"): payout}


def _parse_amount(name: str, text: str) -> int | float:
    label = AMOUNTS[name][0]
    try:
        amount = float(normalize_number(text))
    except ValueError:
        raise IncrowdError(f"'{label}' must be a number; got '{text}'.") from None
    if amount < 0:
        raise IncrowdError(f"'{label}' must not be negative; got '{text}'.")
    return int(amount) if amount.is_integer() else amount
