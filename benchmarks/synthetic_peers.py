"""One mechanism of dpmm on whole-number codes, for ``synthetic.py``.

    python synthetic_peers.py aim|mst EPSILON DELTA GIVEN.npz MADE.npz

Runs in an environment with the packages of ``synthetic.txt``; the domain is given, so nothing is
spent on finding it.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np
import pandas as pd
from dpmm.pipelines import AIMPipeline, MSTPipeline


def main() -> None:
    """Fit, draw, and tell the seconds."""
    name, epsilon, delta, input_path, output_path = sys.argv[1:]
    with np.load(input_path) as file:
        codes, sizes = file["codes"], file["sizes"].tolist()
    names = [f"c{at}" for at in range(codes.shape[1])]
    frame = pd.DataFrame(codes, columns=names)
    domain = dict(zip(names, sizes, strict=True))
    begin = time.process_time()
    pipeline = {"aim": AIMPipeline, "mst": MSTPipeline}[name](
        epsilon=float(epsilon), delta=float(delta), disable_processing=True
    )
    pipeline.fit(frame, domain)
    rows = pipeline.generate(n_records=len(frame))
    seconds = time.process_time() - begin
    np.savez(output_path, codes=rows[names].astype(int).to_numpy())
    print(json.dumps({"seconds": seconds}))


if __name__ == "__main__":
    main()
