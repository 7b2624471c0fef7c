"""Who one is here, and what one may have."""

from fastapi import APIRouter
from pydantic import Field

from assay.model.spend import MICRO
from assay.model.user import Scope
from assay.server.access import Person
from assay.server.bodies import Body, refusals
from assay.server.service import Serving

router = APIRouter(tags=["account"])


class Budget(Body):
    """Of this calendar month (UTC), in dollars. Without a cap nothing is held back and `left` is null."""

    cap: float | None = Field(examples=[20.0])
    spent: float = Field(examples=[3.25], description="By all your runs, those of deleted threads too.")
    held: float = Field(examples=[2.0], description="What runs that have not ended may still spend.")
    left: float | None = Field(examples=[14.75])


class Allowance(Body):
    requests_per_minute: int = Field(examples=[600])
    runs: int = Field(examples=[50], description="At work, in line, or waiting for an answer.")
    runs_at_work: int = Field(examples=[1])
    streams: int = Field(examples=[100])


class Account(Body):
    user: str = Field(examples=["ada"])
    scopes: list[Scope] = Field(examples=[["read", "write", "share"]])
    budget: Budget
    limits: Allowance


@router.get("/api/account", operation_id="account", summary="Who am I, and what is left", responses=refusals())
async def account(caller: Person, service: Serving) -> Account:
    """The owner of the token that was sent, with this month's money and the limits that hold for them."""
    limits, server = service.limits, service.settings.server
    money = await limits.money(caller)
    return Account(
        user=caller.user,
        scopes=sorted(caller.scopes),
        budget=Budget(
            cap=None if money.cap is None else money.cap / MICRO,
            spent=money.spent / MICRO,
            held=money.held / MICRO,
            left=None if money.left is None else money.left / MICRO,
        ),
        limits=Allowance(
            requests_per_minute=caller.requests_per_minute or server.requests_per_minute,
            runs=server.runs_per_user,
            runs_at_work=await limits.at_work(caller),
            streams=server.streams_per_user,
        ),
    )
