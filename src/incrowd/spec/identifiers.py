"""What tells who somebody is: by how a column is called, and by what its values look like."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from ipaddress import ip_address

from incrowd.codes.values import parse_number

# The identifiers that HIPAA's safe-harbor rule names, and how columns that hold them are called.
HIPAA: dict[str, str] = {
    "names": r"(^|_)(name|first_?name|last_?name|surname|given_?name|full_?name)(_|$)",
    "geographic subdivisions": (
        r"(^|_)(address|street|city|town|county|zip|zipcode|postcode|postal_?code|plz|lat|latitude|"
        r"lon|lng|long|longitude|coordinates?)(_|$)"
    ),
    "dates": r"(^|_)(dob|birth_?date|date_?of_?birth|admission|discharge|death|date)(_|$)",
    "telephone numbers": r"(^|_)(phone|telephone|tel|mobile|cell)(_|$)",
    "fax numbers": r"(^|_)fax(_|$)",
    "e-mail addresses": r"(^|_)e_?mail(_|$)",
    "social security numbers": r"(^|_)(ssn|social_?security(_number)?)(_|$)",
    "medical record numbers": r"(^|_)(mrn|medical_?record|chart)(_|$)",
    "health plan numbers": r"(^|_)(insurance|policy|health_?plan|beneficiary)(_|$)",
    "account numbers": r"(^|_)(account|iban)(_|$)",
    "certificate and license numbers": r"(^|_)(license|licence|certificate|passport)(_|$)",
    "vehicle identifiers": r"(^|_)(vin|plate|vehicle)(_|$)",
    "device identifiers": r"(^|_)(device|serial|imei|mac)(_|$)",
    "web addresses": r"(^|_)(url|website|homepage)(_|$)",
    "network addresses": r"(^|_)(ip|ip_?address)(_|$)",
    "biometric identifiers": r"(^|_)(fingerprint|voice_?print|biometric|iris)(_|$)",
    "photographs": r"(^|_)(photo|image|picture|portrait)(_|$)",
    "any other unique number": r"(^|_)(id|uuid|guid|identifier|number|no|key|code)$",
}
_THINGS = (  # whose names identify nobody
    r"(^|_)(clinic|hospital|school|site|center|centre|facility|practice|company|firm|brand|product|"
    r"drug|medicine|test|file|column|variable|region|area|city|town|country|state|county|district|"
    r"street|org|organization|organization|insurer|ward|department|dept|unit|item|store|shop|event|"
    r"course|study|trial|device|group|team|category|class|species|plan|program|programme|project)"
    r"s?_?name(_|$)|(^|_)name_?of_?(the_?)?(clinic|hospital|school|site|company|product|drug|city)"
)
GENERAL = ("geographic subdivisions", "dates")  # these can be generalized instead of dropped
SAMPLED = 1000  # so many values are looked at
_MOST = 0.8  # of them must look alike
_FEWEST = 3


def _make_matcher(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern)
    return lambda text: compiled.fullmatch(text) is not None


def _is_phone(text: str) -> bool:
    """Return whether a text is 7 to 15 digits in groups or after a plus, not a bare number."""
    grouped = re.fullmatch(r"\+?\(?\d{1,4}\)?(?:[ ./-]?\(?\d{2,5}\)?){1,5}", text)
    digits = re.sub(r"\D", "", text)
    phone_mark = text.startswith("+") or re.search(r"\d[ ./-]+\(?\d|\)", text)
    date = re.fullmatch(r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4}", text)
    band = re.fullmatch(r"(\d+)-(\d+)", text)
    if band and len(band[1]) == len(band[2]):  # 2018-2019, 10000-19999
        return False
    if parse_number(text) is not None and not text.startswith("+"):  # 54.30000000
        return False
    bare = text[1:].isdecimal()  # +10005551234, but not +5000
    return bool(grouped and phone_mark and not date and (10 if bare else 7) <= len(digits) <= 15)


def _is_network_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return "." in text or ":" in text


def _is_name(text: str) -> bool:
    """Return whether a text is two to five words with capitals (more with a title), no digit."""
    words = re.findall(r"[^\s,]+", text)
    capital = sum(word[0].isupper() for word in words)
    plain = not re.search(r"[\d_@/:;=<>%]", text) and not text.isupper()
    title = re.search(r"\b(Mr|Mrs|Miss|Ms|Dr|Prof|Rev|Herr|Frau|Mme|Sr|Jr)\b", text)
    return plain and 2 <= len(words) <= (8 if title else 5) and capital >= min(len(words), 2)


_LOOKS: tuple[tuple[str, Callable[[str], bool]], ...] = (
    ("e-mail addresses", _make_matcher(r"[^@\s]+@[^@\s]+\.[a-zA-Z]{2,}")),
    ("web addresses", _make_matcher(r"(?:https?://|www\.)\S+")),
    ("network addresses", _is_network_address),
    ("social security numbers", _make_matcher(r"\d{3}-\d{2}-\d{4}")),
    ("account numbers", _make_matcher(r"[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?")),
    ("device identifiers", _make_matcher(r"(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}")),
    ("any other unique number", _make_matcher(
        r"\{?[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}\}?"
    )),
    ("telephone numbers", _is_phone),
)  # fmt: skip


def identify_by_name(simple: str) -> str | None:
    """Return the identifier that a column with such a name may hold."""
    kinds = (kind for kind, names in HIPAA.items() if re.search(names, simple))
    if re.search(_THINGS, simple):
        kinds = (kind for kind in kinds if kind != "names")
    return next(kinds, None)


def identify_by_values(texts: Sequence[str], rows: int) -> str | None:
    """Return the identifier that nearly all of these distinct values look like, or None.

    Names of people are those that hardly ever repeat: two words with capitals may be a town.
    """
    sample = texts[:: max(len(texts) // SAMPLED, 1)][:SAMPLED]
    if len(sample) < _FEWEST:
        return None
    for kind, fits in _LOOKS:
        if sum(map(fits, sample)) >= _MOST * len(sample) and not _are_amounts(kind, sample):
            return kind
    rare = len(texts) >= max(0.5 * rows, 20)
    return "names" if rare and sum(map(_is_name, sample)) >= _MOST * len(sample) else None


def _are_amounts(kind: str, texts: Sequence[str]) -> bool:
    """Return whether seeming telephone numbers are amounts in threes, of several lengths."""
    threes = all(re.fullmatch(r"\d{1,3}([ .]\d{3})+", text) for text in texts)
    return kind == "telephone numbers" and threes and len({len(text) for text in texts}) > 1


def is_coordinate(texts: Sequence[str]) -> bool:
    """Return whether values look like degrees: four decimals or more, close, on the globe."""
    numbers = [parse_number(text) for text in texts[:SAMPLED]]
    if len(numbers) < 10 or any(x is None or abs(x) > 180 for x in numbers):
        return False
    fine = sum(-int(x.as_tuple().exponent) >= 4 for x in numbers if x is not None)
    sizes = [abs(x) for x in numbers if x is not None]
    return fine >= _MOST * len(numbers) and max(sizes) - min(sizes) <= 25 and min(sizes) > 5
