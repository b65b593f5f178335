"""One thread for linear algebra, where matrices are small and many."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext


def one_thread() -> AbstractContextManager[object]:
    """While it lasts, BLAS works on one thread, if threadpoolctl is here to tell it so.

    Its threads wait for each other by turning in a loop. Where others use the processor, or where
    products are small, that takes far longer than the work: on two busy cores a product of 0.014 s
    took 1 s. It holds for the whole process; where several threads ask at once, it may stay so.
    """
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        return nullcontext()
    limits: AbstractContextManager[object] = threadpool_limits(1, user_api="blas")
    return limits
