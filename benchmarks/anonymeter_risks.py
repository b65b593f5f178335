"""The three risks as Anonymeter measures them; benchmarks/anonymeter.py runs it where that is.

    python -P benchmarks/anonymeter_risks.py JOB

JOB is a file with tables by name, and the parameters. For each release and risk it prints a line of
JSON: hits of the attack and of the control, tries, and the risk with its interval.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


def main() -> None:
    """Measure every release of the job."""
    warnings.simplefilter("ignore")
    pandas: Any = importlib.import_module("pandas")
    tools: Any = importlib.import_module("anonymeter.evaluators")
    job = json.loads(Path(sys.argv[1]).read_text())
    text = dict.fromkeys(job["text"], "str")
    folder = Path(sys.argv[1]).parent

    def table(name: str) -> Any:
        return pandas.read_csv(folder / f"{name}.csv", dtype=text, keep_default_na=False)

    original, control = table("original"), table("control")
    np.random.seed(job["seed"])  # noqa: NPY002 - it draws from the global generator
    known_columns = [name for name in original.columns if name != job["secret"]]
    for name in job["releases"]:
        release = table(name)
        common = {"ori": original, "syn": release, "control": control, "n_attacks": job["tries"]}
        ways: dict[str, Callable[[dict[str, Any]], Any]] = {
            "singling out": lambda arguments: tools.SinglingOutEvaluator(
                **arguments, n_cols=job["columns"], seed=job["seed"], max_attempts=50 * job["tries"]
            ),
            "join": lambda arguments: tools.LinkabilityEvaluator(
                **arguments, aux_cols=tuple(job["halves"]), n_neighbors=1
            ),
            "inference": lambda arguments: tools.InferenceEvaluator(
                **arguments, aux_cols=known_columns, secret=job["secret"], regression=False
            ),
        }
        for risk, way in ways.items():
            start = time.perf_counter()
            evaluator = way(common)
            if risk == "singling out":
                evaluator.evaluate(mode="multivariate")
            else:
                evaluator.evaluate(n_jobs=1)
            result, results = evaluator.risk(), evaluator.results()
            print(
                json.dumps(
                    {
                        "release": name,
                        "risk": risk,
                        "success": float(results.n_success),
                        "control": float(results.n_control),
                        "tries": job["tries"],
                        "excess": [float(result.value), *map(float, result.ci)],
                        "seconds": time.perf_counter() - start,
                    }
                ),
                flush=True,
            )


if __name__ == "__main__":
    main()
