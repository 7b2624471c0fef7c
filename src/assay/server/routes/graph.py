"""The research graph, as it is compiled: a picture of it is always one of the code."""

import asyncio
from functools import cache

from fastapi import APIRouter
from pydantic import ConfigDict, Field

from assay import graph
from assay.model.event import Status
from assay.server.access import Reader
from assay.server.bodies import Body, refusals

router = APIRouter(tags=["graph"])
_HANDLER = "__error_handler__"  # LangGraph's own, one for each stage that may lose a sub-question


class Node(Body):
    """A stage, as events name it, and the status of a run while it is at work; the two ends have none."""

    name: str
    status: Status | None


class Edge(Body):
    start: str = Field(alias="from")
    end: str = Field(alias="to")
    conditional: bool


class Graph(Body):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "nodes": [{"name": "write", "status": "writing"}, {"name": "review", "status": "reviewing"}],
                    "edges": [{"from": "write", "to": "review", "conditional": False}],
                }
            ]
        }
    )

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]


@router.get("/api/graph", summary="The stages, and which follows which", operation_id="get_graph", responses=refusals())
async def get_graph(caller: Reader) -> Graph:
    return await asyncio.to_thread(_drawn)


@cache
def _drawn() -> Graph:
    drawn = graph.build().get_graph()
    return Graph(
        nodes=tuple(
            Node(name=name, status=graph.STATUS.get(name)) for name in drawn.nodes if not name.startswith(_HANDLER)
        ),
        edges=tuple(
            Edge(start=edge.source, end=edge.target, conditional=edge.conditional)
            for edge in drawn.edges
            if not edge.source.startswith(_HANDLER) and not edge.target.startswith(_HANDLER)
        ),
    )
