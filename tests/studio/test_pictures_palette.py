"""Colors of the studio pass the contrast of WCAG 2.1: text 4.5, what charts are read by 3."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import incrowd.studio

STYLE = (Path(incrowd.studio.__file__).parent / "static" / "studio.css").read_text("utf-8")
TEXT = [
    (ink, ground)
    for ground in ("card", "paper")
    for ink in ("ink", "quiet", "accent", "wrong", "good", "doubt")
] + [("accent-ink", "accent"), ("wrong", "wrong-soft"), ("doubt", "doubt-soft"),
     ("good", "good-soft"), ("ink", "soft")]  # fmt: skip
MARKS = [("bars", "card"), ("parts", "card"), ("mark", "card"), ("shade-2", "card"),
         ("shade-0", "card"), ("bars", "paper")]  # fmt: skip


def read_palettes() -> dict[str, dict[str, str]]:
    """The variables of the light and of the dark palette."""
    dark = "".join(re.findall(r"prefers-color-scheme: dark\)\s*\{\s*:root \{(.*?)\}", STYLE, re.S))
    light = re.sub(r"@media \(prefers-color-scheme: dark\)\s*\{\s*:root \{.*?\}\s*\}", "", STYLE,
                   flags=re.S)  # fmt: skip
    find = re.compile(r"--([a-z0-9-]+): (#[0-9a-f]{6})")
    return {"light": dict(find.findall(light)), "dark": dict(find.findall(dark))}


def compute_luminance(color: str) -> float:
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (x / 12.92 if x <= 0.03928 else ((x + 0.055) / 1.055) ** 2.4 for x in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def compute_contrast(first: str, second: str) -> float:
    low, high = sorted(map(compute_luminance, (first, second)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_that_of_the_standard() -> None:
    assert compute_contrast("#000000", "#ffffff") == pytest.approx(21)
    assert compute_contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("palette", ["light", "dark"])
def test_both_palettes_can_be_read(palette: str) -> None:
    colors = read_palettes()[palette]
    for pairs, least in ((TEXT, 4.5), (MARKS, 3.0)):
        for first, second in pairs:
            contrast = compute_contrast(colors[first], colors[second])
            assert contrast >= least, (palette, first, second, round(contrast, 2))
