"""Does MQTT.js, the client of browsers and Node, work with the broker in all ways of connecting?"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import trustme
from tests.interop.brokers import HOST, WITHIN_S, running_broker

from betimes.broker.net.listener import Endpoint
from betimes.broker.net.tls import tls_context
from betimes.model.server_settings import Kind

pytestmark = pytest.mark.live

NODE, NPM = shutil.which("node"), shutil.which("npm")
VERSION = "5.16.0"
INSTALL_WITHIN_S = 120.0
SCRIPT = Path(__file__).with_name("mqttjs_talks.js")


@pytest.fixture(scope="module")
def folder() -> Path:
    """Return where MQTT.js is installed: in the user's cache, once for all runs."""
    if NODE is None or NPM is None:
        pytest.skip("node and npm are not installed")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    found = home / "betimes" / f"mqttjs-{VERSION}"
    if (found / "whole").exists():
        return found
    found.mkdir(parents=True, exist_ok=True)
    (found / "package.json").write_text("{}")
    asked = [NPM, "install", "--no-audit", "--no-fund", "--ignore-scripts", f"mqtt@{VERSION}"]
    try:
        subprocess.run(asked, cwd=found, capture_output=True, check=True, timeout=INSTALL_WITHIN_S)
    except (subprocess.SubprocessError, OSError) as error:
        pytest.skip(f"MQTT.js cannot be installed: {error}")
    (found / "whole").touch()  # an installation that was interrupted starts over
    return found


@pytest.mark.parametrize("version", ["5", "4"])
@pytest.mark.parametrize("scheme", ["mqtt", "mqtts", "ws", "wss"])
def test_messages_of_every_quality_come_back(folder, tmp_path, scheme, version):
    assert NODE is not None
    authority, both = trustme.CA(), tmp_path / "both.pem"
    authority.issue_cert(HOST).private_key_and_cert_chain_pem.write_to_path(both)
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    secure = scheme in ("mqtts", "wss")
    endpoint = Endpoint(
        port=0,
        kind=Kind.WEBSOCKET if scheme.startswith("ws") else Kind.MQTT,
        tls=tls_context(str(both)) if secure else None,
    )
    surroundings = os.environ | ({"AUTHORITY": str(tmp_path / "authority.pem")} if secure else {})
    with running_broker(endpoint=endpoint) as broker:
        done = subprocess.run(
            [NODE, str(SCRIPT), str(folder), f"{scheme}://{HOST}:{broker.port}", version],
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
            env=surroundings,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["a/0 0 1", "a/1 1 100001", "a/2 2 200001", "cars 1 2"]
