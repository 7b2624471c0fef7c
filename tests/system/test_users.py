"""`openassay admin users`: what one process is told, the next one knows."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from openassay.cli.app import app
from openassay.errors import UsageError
from tests.system.command import Command

WRONG = (
    (("add", "a b"), "cannot be a user's name"),
    (("add", "x", "--usd", "nan"), "--usd cannot be 'nan'"),
    (("add", "x", "--requests", "0.5"), "--requests cannot be"),
    (("add", "x", "--scope", "root"), "there is no scope 'root'"),
    (("add", "x", "--expires", "2020-01-01"), "is in the past"),
    (("add", "x", "--label", "a\nb"), "cannot be a label"),
    (("token", "nobody"), "there is no user nobody"),
    (("limit", "nobody"), "there is nothing to change"),
    (("revoke", "nothing"), "there is no token nothing"),
)


def users(*said: str) -> Result:
    """In this process: starting another one for each takes a second or two."""
    return CliRunner().invoke(app, ["admin", "users", *said])


def test_somebody_is_added_in_one_process_and_known_in_the_next(openassay: Command) -> None:
    added = openassay(
        "admin", "users", "add", "ada", "--usd", "20", "--scope", "read", "--scope", "write", "--expires", "30d"
    )
    secret = added.out.strip()
    assert secret.startswith("openassay_")
    assert "It is not shown again." in added.err
    shown = openassay("admin", "users").out
    assert "ada  $20.00 a month" in shown
    assert "read write  expires" in shown
    assert secret not in shown


def test_somebody_is_limited_shut_out_and_let_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENASSAY_DATA_DIR", str(tmp_path))
    assert "No users yet" in users().stderr
    secret = users("add", "ada", "--expires", "30d").stdout.strip()
    another = json.loads(users("token", "ada", "--label", "notebook", "--json").stdout)
    assert (another["user"], another["scopes"]) == ("ada", ["read", "write", "share"])
    shown = users("list").stdout
    assert f"{another['id']}  read write share  does not expire  notebook" in shown

    assert "revoked" in users("revoke", another["id"]).stderr
    assert users("limit", "ada", "--usd", "none", "--requests", "5").exit_code == 0
    assert users("disable", "ada").exit_code == 0
    (told,) = json.loads(users("list", "--json").stdout)
    assert (told["disabled"], told["usd"], told["requests_per_minute"]) == (True, None, 5)
    first, second = told["tokens"]
    left = datetime.fromisoformat(first["expires"]) - datetime.now(UTC)
    assert timedelta(days=29) < left <= timedelta(days=30)
    assert second["revoked"]
    assert users("enable", "ada").exit_code == 0
    after = users().stdout
    assert "disabled" not in after
    for hidden in (secret, another["secret"], "hash"):
        assert hidden not in f"{after}{shown}{told}"


def test_what_cannot_be_is_refused_and_adds_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENASSAY_DATA_DIR", str(tmp_path))
    for said, message in WRONG:
        error = users(*said).exception
        assert isinstance(error, UsageError), said
        assert message in error.message
    assert users("list", "--json").stdout == "[]\n"
