"""What can a broker be told on the command line? Options that `broker` and `network` share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

STORE = "A file for what must survive a restart; without one everything is in memory."

# What the command takes, each of which a file can say too.
Config = Annotated[
    Path | None, typer.Argument(help="A configuration file; none is needed.", metavar="[CONFIG.toml]")
]
Host = Annotated[
    str | None, typer.Option("--host", help="Where to listen: 127.0.0.1; 0.0.0.0 is everywhere.")
]
Port = Annotated[
    int | None,
    typer.Option("--port", "-p", help="1883, or 8883 with TLS; 0 takes one that is free.", metavar="N"),
]
TlsCertificate = Annotated[
    Path | None, typer.Option("--tls-certificate", help="Serve over TLS, with this certificate (PEM).")
]
TlsKey = Annotated[
    Path | None, typer.Option("--tls-key", help="Its key (PEM), if it is not in the same file.")
]
Anonymous = Annotated[
    bool, typer.Option("--anonymous", help="Let clients in without user name and password.")
]
Passwords = Annotated[
    Path | None, typer.Option("--passwords", help="A password file, as `betimes passwd` writes it.")
]
Access = Annotated[
    Path | None, typer.Option("--access", help="An access list in Mosquitto's format: who may what.")
]
StoreOption = Annotated[Path | None, typer.Option("--store", help=STORE)]
MetricsPort = Annotated[
    int | None,
    typer.Option("--metrics-port", help="Serve /metrics (Prometheus) and /healthz there.", metavar="N"),
]
Telemetry = Annotated[
    Path | None, typer.Option("--telemetry", help="Write down there what the broker sees, as Parquet.")
]
TelemetryShare = Annotated[
    float | None, typer.Option("--telemetry-share", help="Of which share of all events: 0.01.", metavar="S")
]
TelemetryEvery = Annotated[
    str | None,
    typer.Option("--telemetry-every", help="How often a file is written: 60s.", metavar="TIME"),
]
Name = Annotated[
    str | None, typer.Option("--name", help="What the broker calls itself: the origin of message ids.")
]
ControlSecret = Annotated[
    Path | None,
    typer.Option("--control-secret", help="A file: who signs with it, as `betimes control`, is believed."),
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Log who comes and goes, on standard error.")]
