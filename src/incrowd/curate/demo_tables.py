"""Sample tables of people who do not exist, shaped like the data sets of Holohan and others.

Every table is decided by its seed. The distributions, in short:

- **voters** (134,791 rows by default; as in Florida): ZIP codes 32004-34997 whose populations
  follow a power law, sex 53 % female, ages 18 to 100 thinning out past 70, five races,
  height normal by sex (162.1 and 175.7 cm, 6.7 and 7.3 spread), falling with age past 45.
- **patients** (72,825; as in Michigan): ZIP codes 48001-49971, weight log-normal by sex and
  age, and a diagnosis whose odds depend on age.
- **census** (32,440; as in the Adult table): nine attributes of working people, where marital
  status follows age, education and occupation hang together, and income follows both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from incrowd.engine.source import local_engine
from incrowd.engine.table import Table
from incrowd.errors import ParameterError, check_choice, check_whole

Columns = dict[str, npt.NDArray[Any]]

_FIRST = {
    "female": """
        Mary Linda Susan Karen Lisa Nancy Betty Sandra Ashley Emily Donna Michelle Carol Amanda
        Melissa Deborah Stephanie Rebecca Laura Sharon Cynthia Amy Angela Anna Brenda Emma Helen
    """,
    "male": """
        James Robert John Michael David William Richard Joseph Thomas Charles Daniel Matthew
        Anthony Mark Donald Steven Paul Andrew Joshua Kenneth Kevin Brian George Ronald Jason
    """,
}
_LAST = """
    Smith Johnson Williams Brown Jones Garcia Miller Davis Rodriguez Martinez Hernandez Lopez Wilson
    Anderson Thomas Taylor Moore Jackson Martin Lee Perez Thompson White Harris Sanchez Clark Lewis
    Robinson Walker Young Allen King Wright Scott Torres Nguyen Hill Flores Green Adams Nelson Baker
    Hall Rivera Campbell Mitchell Carter Roberts Gomez Phillips Evans Turner Diaz Parker Cruz
"""
_SCHOOLS = """
    Preschool 1st-4th 5th-6th 7th-8th 9th 10th 11th 12th HS-grad Some-college Assoc-voc Assoc-acdm
    Bachelors Masters Prof-school Doctorate
"""
_YEAR = 2026


def make_demo_table(kind: str, *, rows: int | None = None, seed: int = 1) -> Table:
    """Make a demo table of the given kind: voters, patients or census."""
    check_choice("kind", kind, tuple(_KINDS))
    make, usual = _KINDS[kind]
    count = usual if rows is None else int(check_whole("rows", rows))
    if count > 100_000_000:
        raise ParameterError("rows", "be at most 100,000,000", count)
    start = int(check_whole("seed", seed, least=0))
    return local_engine().from_columns(make(count, np.random.default_rng(start)))


def _draw_voters(n: int, draw: np.random.Generator) -> Columns:
    sex, age = _draw_sexes(n, draw), _draw_ages(n, draw)
    races = ["White", "Hispanic", "Black", "Asian", "Other"]
    return {
        **_draw_identities(n, sex, draw),
        "zip": _draw_zip_codes(n, 32004, 34997, 900, draw),
        "sex": sex,
        "birth_year": (_YEAR - age).astype(np.int64),
        "race": _draw_choices(n, races, [0.62, 0.18, 0.14, 0.025, 0.035], draw),
        "height": _draw_heights(sex, age, draw),
    }


def _draw_patients(n: int, draw: np.random.Generator) -> Columns:
    sex, age = _draw_sexes(n, draw), _draw_ages(n, draw)
    return {
        **_draw_identities(n, sex, draw),
        "zip": _draw_zip_codes(n, 48001, 49971, 700, draw),
        "sex": sex,
        "birth_year": (_YEAR - age).astype(np.int64),
        "weight": _draw_weights(sex, age, draw),
        "diagnosis": _draw_diagnoses(age, draw),
    }


def _draw_census(n: int, draw: np.random.Generator) -> Columns:
    sex = np.where(draw.random(n) < 0.32, "female", "male")
    age = np.clip(np.round(17 + 22 * draw.gamma(1.9, 0.55, n)), 17, 90)
    older = (age - 17) / 73
    never = draw.random(n) < np.exp(-3.2 * older)
    once = draw.random(n) < 0.72
    apart = _draw_choices(n, ["Divorced", "Separated", "Widowed"], [0.7, 0.15, 0.15], draw)
    school = np.clip(np.round(draw.normal(9.6, 2.6, n)), 1, 16).astype(np.int64)
    schools = np.array(_SCHOOLS.split())
    skilled = draw.random(n) < 1 / (1 + np.exp(-(school - 11) / 1.5))
    high = _draw_choices(
        n, ["Exec-managerial", "Prof-specialty", "Tech-support", "Sales"], None, draw
    )
    low = _draw_choices(
        n,
        ["Craft-repair", "Adm-clerical", "Other-service", "Machine-op-inspct", "Transport-moving",
         "Handlers-cleaners", "Farming-fishing", "Protective-serv"],
        [0.24, 0.22, 0.2, 0.12, 0.09, 0.07, 0.04, 0.02],
        draw,
    )  # fmt: skip
    works = ["Private", "Self-emp-not-inc", "Local-gov", "State-gov", "Self-emp-inc", "Federal-gov"]
    countries = ["United-States", "Mexico", "Philippines", "Germany", "Canada", "India", "Cuba"]
    married = ~never & once
    odds = -4.6 + 0.32 * (school - 9) + 1.1 * skilled + 1.6 * married + 2.0 * np.sqrt(older)
    rich = draw.random(n) < 1 / (1 + np.exp(-odds))
    return {
        "person_id": draw.permutation(np.arange(100_000, 100_000 + n)),
        "sex": sex,
        "age": age.astype(np.int64),
        "race": _draw_choices(
            n,
            ["White", "Black", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other"],
            [0.86, 0.093, 0.03, 0.009, 0.008],
            draw,
        ),
        "marital_status": np.where(
            never, "Never-married", np.where(once, "Married-civ-spouse", apart)
        ),
        "education": schools[school - 1],
        "native_country": _draw_choices(
            n, countries, [0.92, 0.03, 0.01, 0.01, 0.01, 0.01, 0.01], draw
        ),
        "workclass": _draw_choices(n, works, [0.74, 0.083, 0.068, 0.042, 0.036, 0.031], draw),
        "occupation": np.where(skilled, high, low),
        "salary_class": np.where(rich, ">50K", "<=50K"),
        "height": _draw_heights(sex, age, draw),
    }


def _draw_identities(n: int, sex: npt.NDArray[Any], draw: np.random.Generator) -> Columns:
    women, men = (_FIRST[kind].split() for kind in ("female", "male"))
    at = np.where(
        sex == "female",
        draw.integers(0, len(women), n),
        len(women) + draw.integers(0, len(men), n),
    )
    first = np.array([*women, *men])[at]
    last = _draw_choices(n, _LAST.split(), None, draw)
    mark = draw.permutation(np.arange(n)).astype(str)
    mail = np.char.add(np.char.add(np.char.lower(last), mark), "@example.org")
    return {"first_name": first, "last_name": last, "email": mail}


def _draw_choices(
    n: int, options: list[str], shares: list[float] | None, draw: np.random.Generator
) -> npt.NDArray[Any]:
    weights = None if shares is None else np.array(shares) / sum(shares)
    return np.array(options)[draw.choice(len(options), size=n, p=weights)]


def _draw_sexes(n: int, draw: np.random.Generator) -> npt.NDArray[Any]:
    return np.where(draw.random(n) < 0.53, "female", "male")


def _draw_ages(n: int, draw: np.random.Generator) -> npt.NDArray[np.float64]:
    """Draw ages from 18 to 100: even up to about 70, then thinning out."""
    ages = np.arange(18, 101)
    weights = 1 / (1 + np.exp((ages - 74) / 6.5))
    return draw.choice(ages, size=n, p=weights / weights.sum()).astype(np.float64)


def _draw_zip_codes(
    n: int, low: int, high: int, count: int, draw: np.random.Generator
) -> npt.NDArray[Any]:
    codes = np.sort(draw.choice(np.arange(low, high + 1), size=count, replace=False))
    weights = draw.permutation(1 / np.arange(3, count + 3) ** 0.8)
    names = np.array([f"{code:05d}" for code in codes])
    return names[draw.choice(count, size=n, p=weights / weights.sum())]


def _draw_heights(
    sex: npt.NDArray[Any], age: npt.NDArray[np.float64], draw: np.random.Generator
) -> npt.NDArray[np.float64]:
    woman = sex == "female"
    mean = np.where(woman, 162.1, 175.7) - 0.06 * np.maximum(age - 45, 0)
    heights: npt.NDArray[np.float64] = draw.normal(mean, np.where(woman, 6.7, 7.3))
    return heights.round(1)


def _draw_weights(
    sex: npt.NDArray[Any], age: npt.NDArray[np.float64], draw: np.random.Generator
) -> npt.NDArray[np.float64]:
    woman = sex == "female"
    middle = np.where(woman, 74.0, 87.0) + 8 * np.exp(-(((age - 52) / 22) ** 2)) - 4
    factor: npt.NDArray[np.float64] = np.exp(draw.normal(0.0, np.where(woman, 0.2, 0.17)))
    weights: npt.NDArray[np.float64] = middle * factor
    return weights.round(1)


def _draw_diagnoses(age: npt.NDArray[np.float64], draw: np.random.Generator) -> npt.NDArray[Any]:
    names = np.array(["healthy", "hypertension", "diabetes", "asthma", "depression", "cancer"])
    old = (age - 18) / 82
    young = np.array([2.2, 0.2, 0.1, 0.25, 0.3, 0.03])  # weights at 18, and at 100
    aged = np.array([0.8, 1.8, 0.8, 0.25, 0.2, 0.33])
    weights = young + np.outer(old, aged - young)
    bounds = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)
    chosen = (draw.random((age.size, 1)) > bounds).sum(axis=1)
    diagnoses: npt.NDArray[Any] = names[np.minimum(chosen, len(names) - 1)]
    return diagnoses


_KINDS: Mapping[str, tuple[Callable[[int, np.random.Generator], Columns], int]] = {
    "voters": (_draw_voters, 134_791),
    "patients": (_draw_patients, 72_825),
    "census": (_draw_census, 32_440),
}

SPECS = {
    "voters": """\
# What every column is, said once. All of it is public knowledge; nothing is read from the data.
table: voters.parquet
unit: one row per person
columns:
  first_name: {role: identifier}
  last_name: {role: identifier}
  email: {role: identifier}
  zip: {role: quasi, hierarchy: {mask: {length: 5}}}
  sex: {role: quasi, hierarchy: {groups: {Person: [female, male]}}}
  birth_year: {role: quasi, hierarchy: {intervals: {from: 1900, to: 2026, widths: [2, 4, 8, 16]}}}
  race: {role: quasi, hierarchy: {flat: {values: [White, Hispanic, Black, Asian, Other]}}}
  height: {role: drop}
release: {method: safe, epsilon: 1.0, delta: 1.0e-6}
""",
    "patients": """\
# What every column is, said once. All of it is public knowledge; nothing is read from the data.
table: patients.parquet
unit: one row per person
columns:
  first_name: {role: identifier}
  last_name: {role: identifier}
  email: {role: identifier}
  zip: {role: quasi, hierarchy: {mask: {length: 5}}}
  sex: {role: quasi, hierarchy: {groups: {Person: [female, male]}}}
  birth_year: {role: quasi, hierarchy: {intervals: {from: 1900, to: 2026, widths: [2, 4, 8, 16]}}}
  weight:
    role: quasi
    hierarchy:
      intervals: {from: 20, to: 300, step: 0.1, widths: [5, 10, 20, 40], open: both}
  diagnosis:
    role: sensitive
    hierarchy: {flat: {values: [healthy, hypertension, diabetes, asthma, depression, cancer]}}
release: {method: safe, epsilon: 1.0, delta: 1.0e-6}
""",
    "census": """\
# What every column is, said once. All of it is public knowledge; nothing is read from the data.
table: census.parquet
unit: one row per person
columns:
  person_id: {role: identifier}
  sex: {role: quasi, hierarchy: {groups: {Person: [female, male]}}}
  age: {role: quasi, hierarchy: {intervals: {from: 15, to: 94, widths: [5, 10, 20, 40]}}}
  race:
    role: quasi
    hierarchy: {flat: {values: [White, Black, Asian-Pac-Islander, Amer-Indian-Eskimo, Other]}}
  marital_status:
    role: quasi
    hierarchy:
      groups:
        Married: [Married-civ-spouse]
        Single: [Never-married, Divorced, Separated, Widowed]
  education:
    role: quasi
    hierarchy:
      order:
        values: [Preschool, 1st-4th, 5th-6th, 7th-8th, 9th, 10th, 11th, 12th, HS-grad, Some-college,
                 Assoc-voc, Assoc-acdm, Bachelors, Masters, Prof-school, Doctorate]
        runs: [2, 4, 8]
  native_country:
    role: quasi
    hierarchy:
      groups:
        America: [United-States, Canada, Mexico, Cuba]
        Elsewhere: [Germany, India, Philippines]
  workclass:
    role: quasi
    hierarchy:
      groups:
        Government: [Local-gov, State-gov, Federal-gov]
        Self-employed: [Self-emp-not-inc, Self-emp-inc]
        Company: [Private]
  occupation:
    role: quasi
    hierarchy:
      groups:
        Office: [Exec-managerial, Prof-specialty, Tech-support, Sales, Adm-clerical]
        Manual: [Craft-repair, Machine-op-inspct, Transport-moving, Handlers-cleaners,
                 Farming-fishing]
        Service: [Other-service, Protective-serv]
  salary_class: {role: sensitive, hierarchy: {flat: {values: ["<=50K", ">50K"]}}}
  height: {role: drop}
release: {method: safe, epsilon: 1.0, delta: 1.0e-6}
""",
}
