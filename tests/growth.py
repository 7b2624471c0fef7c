"""How work grows with its input: a ratio within one run, which a slow or busy machine does not change."""

from collections.abc import Callable
from time import process_time


def growth(work: Callable[[int], object], small: int, times: int = 4) -> float:
    """Return how many times longer `work(small * times)` takes than `work(small)`: about `times` where it is linear,
    the square of that where it is quadratic. Each is the best of three, in time of this process alone."""

    def best(size: int) -> float:
        taken = []
        for _ in range(3):
            began = process_time()
            work(size)
            taken.append(process_time() - began)
        return min(taken)

    work(small)  # what is loaded or compiled on first use is no part of it
    return best(small * times) / max(best(small), 1e-3)


LINEAR = 10  # for four times as much: linear work takes 4 times as long, quadratic work 16 times
