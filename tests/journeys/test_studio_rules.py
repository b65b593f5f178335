"""By clicks and keys on a phone: rules on classes, costs and benefits, risk, and the release."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from support.studio import RunningStudio
from support.web import find_violations, open_page, open_room, settle_page

from incrowd.release.verify import read_certificate, verify
from incrowd.spec.file import read_spec_file
from incrowd.spec.release import KAnonymitySpec

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PHONE = {"width": 390, "height": 844}
SPEC = """
table: cohort.csv
columns:
  age: {role: quasi, hierarchy: {intervals: {from: 18, to: 89, widths: [6, 12, 36]}}}
  region: {role: quasi, hierarchy: {flat: {values: [north, south, west]}}}
  illness: {role: sensitive}
  member: {role: sensitive}
  home: {role: drop}
release: {method: k-anonymity, k: 5}
"""


def wait_for_undo(page: Page, words: str) -> None:
    """Wait until the last change is what Undo would take back."""
    page.wait_for_selector(f'#undo-button:has-text("{words}")')
    settle_page(page)


def check_page(page: Page) -> None:
    """Nothing keeps anybody out, and nothing is wider than the phone."""
    assert find_violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_rules_payout_and_risk_by_keys_on_a_phone(studio: RunningStudio, chromium: Browser) -> None:
    rows = range(1_500)
    pl.DataFrame(
        {
            "age": [18 + at * 7 % 72 for at in rows],
            "region": [["north", "south", "west"][at % 3] for at in rows],
            "illness": [["flu", "cold", "asthma", "none"][at * at % 11 % 4] for at in rows],
            "member": ["yes" if at % 5 == 0 else "no" for at in rows],
            "home": [at // 4 for at in rows],
        }
    ).write_csv(studio.folder / "cohort.csv")
    spec = studio.folder / "cohort.yaml"
    spec.write_text(SPEC, encoding="utf-8")
    with open_page(chromium, studio, refusals=True, viewport=PHONE, color_scheme="dark") as page:
        page.fill("#place", "cohort.yaml")
        page.press("#place", "Enter")
        page.wait_for_url("**/desk/**")
        settle_page(page)
        open_room(page, "explore")
        page.wait_for_selector("#best-title")
        settle_page(page)
        check_page(page)
        page.fill("#diversity-recursive-c-0", "9")
        page.press("#diversity-recursive-c-0", "Enter")  # half a rule is refused, and said
        page.wait_for_selector("#problem:has-text('needs both c and ℓ')")
        settle_page(page)
        page.fill("#diversity-recursive-c-0", "9")
        page.fill("#diversity-recursive-l-0", "2")
        page.press("#diversity-recursive-l-0", "Enter")
        wait_for_undo(page, "diversity of 'illness'")
        page.focus("#group-1-2 > summary")
        page.keyboard.press("Enter")
        page.fill("#presence-value-1", "yes")
        page.fill("#presence-most-1", "0,9")
        page.press("#presence-most-1", "Enter")
        wait_for_undo(page, "δ-presence of 'member'")
        for name, amount in (("benefit", "1200"), ("publisher_loss", "300"),
                             ("attacker_gain", "300"), ("attack_cost", "4")):  # fmt: skip
            page.fill(f"#payout-{name}", amount)
        page.press("#payout-attack_cost", "Enter")
        wait_for_undo(page, "costs and benefits")
        page.wait_for_selector("text=The first loses least (payout)")
        check_page(page)
        declared = read_spec_file(spec).spec
        assert isinstance(declared.release, KAnonymitySpec)
        assert declared.release.payout is not None
        assert declared.columns["illness"].diversity is not None
        assert declared.columns["member"].presence is not None
        assert declared.columns["member"].presence.most == 0.9
        page.click("#to-risk")
        page.wait_for_selector("#records")
        page.select_option("#household", "home")
        page.fill("#population", "20,000")
        page.press("#population", "Enter")
        page.wait_for_selector("text=20,000 people, as given")
        settle_page(page)
        assert page.inner_text("#risk-found").startswith("The table as a whole")
        check_page(page)
        open_room(page, "publish")
        page.fill("#name", "cohort-release")
        page.click("#publish")
        page.wait_for_selector("#download")
        check_page(page)
    folder = studio.folder / "cohort-release"
    assert verify(folder) == []
    statement = " ".join(entry.text for entry in read_certificate(folder).guarantee.statement)
    assert "fewer than 9 times the rows of value number 2" in statement
    assert "the value 'yes' of 'member' has a share of at most 0.9" in statement
