"""What the container runs, without one: the environment of compose.yaml, and a single folder that can be written to."""

import shutil
import signal
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import yaml

from tests.system.command import PATIENCE, ROOT, Command

READ_ONLY = 'mount --make-rprivate / && mount --bind "$0" "$0" && mount -o remount,bind,ro / && exec "$@"'


def read_only_but(folder: Path) -> tuple[str, ...]:
    """What to put before a command so that it can write nowhere else; nothing where the system does not let us."""
    if shutil.which("unshare") is None:
        return ()
    prefix = ("unshare", "--mount", "sh", "-c", READ_ONLY, str(folder))
    tried = subprocess.run([*prefix, "true"], capture_output=True, timeout=PATIENCE, check=False)
    return prefix if tried.returncode == 0 else ()


@pytest.fixture
def container(tmp_path: Path, postgres_address: str) -> tuple[Command, tuple[str, ...], dict[str, str]]:
    """Caches stay in the process: the tests of the cache have a Valkey."""
    data = tmp_path / "volume"
    data.mkdir()
    server = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]["server"]
    given = {name: value for name, value in server["environment"].items() if "${" not in value}
    own = {"DATABASE_URL": postgres_address, "OPENASSAY_CACHE__BACKEND": "memory", "OPENASSAY_SERVER__PORT": "0"}
    given.pop("REDIS_URL")
    env = {**given, **own, "OPENASSAY_DATA_DIR": str(data), "HOME": str(data), "TMPDIR": str(data)}
    return Command(data, data), read_only_but(data), env


def get(address: str, token: str | None = None) -> int:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=PATIENCE) as answer:  # noqa: S310
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


@pytest.mark.slow
@pytest.mark.requirement("F-10", "W-12")
def test_it_is_nobodys_until_somebody_was_added_and_theirs_from_then_on(
    container: tuple[Command, tuple[str, ...], dict[str, str]],
) -> None:
    """As docs/howto/deploy.md goes: `up` too early, `run --rm server users add`, `up`."""
    openassay, prefix, env = container
    if prefix:
        assert not (openassay.folder.parent / "elsewhere").exists()
        tried = subprocess.run(
            [*prefix, "touch", str(openassay.folder.parent / "elsewhere")], check=False, timeout=PATIENCE
        )
        assert tried.returncode != 0, "it can write nowhere else"

    openassay("serve", env=env).refused(2, "nobody has a token", "openassay admin users add")
    added = openassay("admin", "users", "add", "ada", "--json", env=env)
    assert added.code == 0, added.err

    with openassay.started("serve", prefix=prefix, env=env) as process:
        assert process.stdout is not None
        here = process.stdout.readline().decode().strip().replace("0.0.0.0", "127.0.0.1")  # noqa: S104
        assert get(f"{here}/healthz") == 200
        assert get(f"{here}/api/account") == 401
        assert get(f"{here}/api/account", added.json["secret"]) == 200
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err.decode()
