"""An answer in figures and words, for terminals and notebooks; what plans of every kind are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from html import escape

from incrowd.privacy.rounded import rounded


class Answer(ABC):
    """Figures by name, and what they mean in a few sentences."""

    @abstractmethod
    def as_dict(self) -> Mapping[str, int | float | str]:
        """The figures as plain values, for JSON."""

    @abstractmethod
    def words(self) -> str:
        """What they mean."""

    def shown(self) -> list[tuple[str, str]]:
        """Names and values for a reader: six digits, rounded against us."""
        return [
            (name, value if isinstance(value, str) else rounded(name, value, 6))
            for name, value in self.as_dict().items()
        ]

    def __str__(self) -> str:
        figures = self.shown()
        width = max(10, *(len(name) for name, _ in figures))
        return "\n".join([*(f"{name:<{width}}  {value}" for name, value in figures), self.words()])

    def _repr_html_(self) -> str:
        shown = [(escape(name), escape(value)) for name, value in self.shown()]
        rows = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in shown)
        return f"<table>{rows}</table><p>{escape(self.words())}</p>"
