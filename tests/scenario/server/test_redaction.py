"""No secret leaves the server: not in logs, events, errors or exports."""

import io
import zipfile

import pytest

from openassay.engine.runner import Runner
from openassay.models.thread import ResearchOptions
from openassay.telemetry import logs
from openassay.text.redaction import GONE
from tests.scenario.server.asking import researched, standing
from tests.scenario.server.conftest import Http, Open, token_of
from tests.scenario.server.sse import transcript

KEY = "c0ffee-and-more-than-that"
QUESTION = "What's happening with Tesla and its stock?"


@pytest.fixture(autouse=True)
def _a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAVILY_API_KEY", KEY)


@pytest.mark.slow
async def test_a_key_in_a_question_goes_no_further(serve: Open, http: Http) -> None:
    """Not even into the title, the state or the journal; and the person is told."""
    out = io.StringIO()
    server = await serve(log_level="info")
    with logs.configure_logs(server.service.settings, out):
        client = http(server)
        thread = await researched(client, f"{QUESTION} {KEY}", context=f"It is {KEY}.")
        heard = await transcript(client, thread)
        await client.get(f"/api/threads/{thread}", params={"share": KEY})
    answers = [
        (await client.get(f"/api/threads/{thread}{path}")).text
        for path in (
            "",
            "/runs",
            "/state",
            "/report",
            "/export?format=md",
            "/export?format=html",
            "/export?format=json",
        )
    ]
    with zipfile.ZipFile(io.BytesIO((await client.get(f"/api/threads/{thread}/export?format=zip")).content)) as bundle:
        files = {name: bundle.read(name).decode() for name in bundle.namelist()}
    told = "\n".join([*answers, *(one.data for one in heard), *files.values(), out.getvalue()])
    assert KEY not in told
    assert f"{QUESTION} {GONE}" in told
    assert any(name.endswith("/journal/events.jsonl") for name in files)
    assert "was removed" in told
    for path in server.service.settings.data_dir.rglob("*"):
        if path.is_file():
            assert KEY.encode() not in path.read_bytes(), path


@pytest.mark.slow
async def test_what_goes_wrong_is_told_without_secrets(
    serve: Open, http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await serve()
    client = http(server)
    engine = server.service.engine

    async def fail(*_: object) -> None:
        raise RuntimeError(f"GET https://ada:pass@api.example/?api_key=abc with Bearer {KEY}")

    monkeypatch.setattr(Runner, "estimate", fail)
    run = await engine.start(QUESTION, ResearchOptions(source="demo"))
    await engine.wait(run.id)
    ended = await standing(client, run.thread)
    expected = f"RuntimeError: GET https://{GONE}@api.example/?api_key={GONE} with Bearer {GONE}"
    assert (ended["status"], ended["error"]) == ("failed", expected)
    events = [event async for event in engine.events(run.id)]
    assert expected in [event.data.get("message") for event in events]


@pytest.mark.slow
async def test_an_address_with_a_secret_is_not_told_back(serve: Open, http: Http) -> None:
    server = await serve()
    token = await token_of(server, "ada")
    for path in (f"/api/threads/{KEY}", f"/nowhere/{token}", f"/s/share_0123abcd_{'x' * 43}/more"):
        answer = await http(server, token).get(path)
        assert answer.status_code == 404
        assert GONE in answer.json()["instance"]
        assert path not in answer.text
