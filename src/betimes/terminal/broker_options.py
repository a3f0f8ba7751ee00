"""Options that `betimes broker`, `network` and `peer` share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

STORE = "The file for sessions and retained messages; without it they are in memory only."

# The configuration file has a key for each of these.
Config = Annotated[
    Path | None, typer.Argument(help="An optional configuration file.", metavar="[CONFIG.toml]")
]
Host = Annotated[
    str | None,
    typer.Option("--host", help="The address to listen at. Default: 127.0.0.1; 0.0.0.0 is every address."),
]
Port = Annotated[
    int | None,
    typer.Option(
        "--port",
        "-p",
        help="The port to listen at. Default: 1883, or 8883 with TLS; 0 takes a free one.",
        metavar="N",
    ),
]
TlsCertificate = Annotated[
    Path | None, typer.Option("--tls-certificate", help="Serve over TLS, with this certificate (PEM).")
]
TlsKey = Annotated[
    Path | None,
    typer.Option("--tls-key", help="The key of the certificate (PEM), if it is in another file."),
]
Anonymous = Annotated[
    bool, typer.Option("--anonymous", help="Accept clients without user name and password.")
]
Passwords = Annotated[
    Path | None, typer.Option("--passwords", help="The password file; `betimes passwd` writes it.")
]
Access = Annotated[
    Path | None, typer.Option("--access", help="The access control list, in Mosquitto's format.")
]
Accounts = Annotated[
    Path | None,
    typer.Option(
        "--accounts",
        help="What users are granted: prices, bandwidth, sessions (TOML; docs/guides/security.md).",
    ),
]
StoreOption = Annotated[Path | None, typer.Option("--store", help=STORE)]
MetricsPort = Annotated[
    int | None,
    typer.Option(
        "--metrics-port", help="Serve /metrics (Prometheus), /healthz and /readyz at this port.", metavar="N"
    ),
]
Telemetry = Annotated[
    Path | None, typer.Option("--telemetry", help="The directory for telemetry files (Parquet).")
]
TelemetryShare = Annotated[
    float | None,
    typer.Option("--telemetry-share", help="The share of events to record. Default: 0.01.", metavar="S"),
]
TelemetryEvery = Annotated[
    str | None,
    typer.Option("--telemetry-every", help="How often to write a file. Default: 60s.", metavar="TIME"),
]
Name = Annotated[
    str | None, typer.Option("--name", help="The name of the broker: the origin in message ids.")
]
ControlSecret = Annotated[
    Path | None,
    typer.Option(
        "--control-secret", help="The secret file that verifies models signed by `betimes control`."
    ),
]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Log connections and disconnections on standard error.")
]
