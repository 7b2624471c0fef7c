"""Runs killed at random moments and taken up again; benchmarks/bench_kills.py does it hundreds of times."""

from pathlib import Path

import pytest

from benchmarks.killing import trial


@pytest.mark.slow
@pytest.mark.requirement("W-16", "F-10")
@pytest.mark.parametrize(("where", "kills"), [("sqlite", 5), ("postgres", 3)])
async def test_nothing_is_lost_or_paid_for_twice(
    where: str, kills: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    address = request.getfixturevalue("postgres_address") if where == "postgres" else None

    tally = await trial(tmp_path, kills, seed=kills, database=address)

    assert tally.kills >= kills
    assert (tally.lost_runs, tally.paid_again, tally.unbooked) == ([], [], [])
    assert tally.requests > 0
