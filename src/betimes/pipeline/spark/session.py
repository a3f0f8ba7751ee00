"""Opening Spark: `open_session` is the only place at which that happens.

The master is `local[*]` unless the caller passes another one, or `--remote` for Spark Connect. The standard
error of Java goes to a file, not to the user's terminal: its last lines are shown when the start fails. Every
wait that could last for ever (a dead master, a cluster without workers) has a limit.
"""

from __future__ import annotations

import atexit
import hashlib
import importlib.util
import os
import shutil
import socket
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

import betimes
from betimes.model.errors import BetimesError, SettingError
from betimes.pipeline.spark import worker_daemon
from betimes.pipeline.spark.java import Java, archive_file, find_java, reading_option
from betimes.pipeline.spark.lazy import DataFrame, F, SparkSession

SHIPPED = {".py", ".toml"}  # a scenario is among the modules
if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")

REACH_S_MAX = 5.0  # for one TCP connection to a master or a Connect server
START_S_MAX = 120.0  # for Java, the context and, on a cluster, the first worker
CONNECT_PORT = 15002
TASKS_PER_CORE = 4  # so that no core waits long for the last
CORES_MAX = 10_000  # that can be counted over Spark Connect
CONNECT_PACKAGES = ("grpc", "grpc_status", "google.rpc", "zstandard")
START_KEY = "spark.betimes.start.s"  # seconds that opening took, kept with the session
CAPITALS_KEY = "spark.sql.caseSensitive"  # as filters are: Speed is not speed
LOG_LINES_SHOWN = 6
SOCKET_NAME_LENGTH = 44  # a dot, a UUID, .sock
SOCKET_PATH_LENGTH_MAX = 104  # the strictest limit of the systems Spark runs on

# For small jobs the optimising compiler and the parallel collector cost more than they bring. Without that
# compiler Java keeps only 48 MB of compiled code by default, which two runs of the pipeline fill.
LOCAL_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"

_own_directory: Path | None = None
# tasks that run at once, where a job had to find it out
_cores: WeakKeyDictionary[SparkSession, int] = WeakKeyDictionary()


class SessionError(BetimesError):
    """Spark does not start, or the cluster is not available; says what was tried and what the answer was."""


MASTERS = ("local", "spark://", "yarn", "k8s://")


def open_session(
    app_name: str,
    *,
    master: str | None = None,
    remote: str | None = None,
    settings: Mapping[str, str] | None = None,
    start_s_max: float = START_S_MAX,
) -> SparkSession:
    """Open Spark, or return the session that is already open (a process has one)."""
    if master and remote:
        problem = f"cannot be combined with --master {master}"
        raise SettingError("--remote", remote, problem, "give one of them")
    if master and not master.startswith(MASTERS):
        hint = "write local[2], spark://HOST:7077, yarn or k8s://HOST:PORT"
        raise SettingError("--master", master, "is no Spark master", hint)
    began_s = time.monotonic()
    if not master:
        remote = remote or os.environ.get("SPARK_REMOTE")
    if remote:
        if not remote.startswith("sc://"):
            raise SettingError("--remote", remote, "is not a Spark Connect address", "write sc://HOST:PORT")
        session = _open_remote(app_name, remote, start_s_max)
    else:
        session = _open_classic(app_name, master, dict(settings or {}), start_s_max)
    if session.conf.get(START_KEY, None) is None:
        session.conf.set(START_KEY, f"{time.monotonic() - began_s:.3f}")
    return session


def start_s(spark: SparkSession) -> float:
    """Return the seconds that opening this session took."""
    return float(spark.conf.get(START_KEY, "0") or 0)


def is_remote(spark: SparkSession) -> bool:
    """Return whether this is a Spark Connect session, which has no context, status tracker or Java here."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def cores(spark: SparkSession) -> int:
    """Return how many tasks run at once. For a Spark Connect server a small job finds it out, once."""
    if not is_remote(spark):
        return int(spark.sparkContext.defaultParallelism)
    known = _cores.get(spark)
    if known is None:
        known = _cores[spark] = spark.range(CORES_MAX).select(F.spark_partition_id()).distinct().count()
    return known


def dealt_out(spark: SparkSession, rows: pa.Table, tasks: int) -> DataFrame:
    """Return rows in so many tasks, by their column `task`.

    They are in one partition first, so that the stage with as many tasks is the one that runs: for progress.
    """
    frame = spark.createDataFrame(rows).coalesce(1)
    return frame.repartitionById(tasks, F.col("task").cast("int")) if tasks > 1 else frame


def local_java_options(java: Java) -> str:
    """Return the options that make Java fast at small jobs: compiler, collector, and the class archive."""
    return f"{LOCAL_JAVA_OPTIONS} {reading_option(java, archive_file(java))}".rstrip()


def session_settings(app_name: str, master: str, java_options: str = LOCAL_JAVA_OPTIONS) -> dict[str, str]:
    """Return the settings of Betimes for such a master. The user's own settings override them."""
    settings = {
        "spark.app.name": app_name,
        "spark.master": master,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        CAPITALS_KEY: "true",
        # If this is on, every call that builds a query sends its place in the code to Java, and takes twice
        # as long.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.sql.warehouse.dir": str(_directory() / "warehouse"),
        # A worker that dies of a signal then prints where, instead of only that it died.
        "spark.python.worker.faulthandler.enabled": "true",
        # Only some tasks use this setting: if it were on, each kind would have Python processes of its own.
        "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    }
    if is_local(master):
        settings |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.extraJavaOptions": java_options,
            "spark.sql.shuffle.partitions": "2",
            # Workers of a cluster may not have Betimes before it is sent to them.
            "spark.python.daemon.module": worker_daemon.MODULE,
        }
        if len(str(_directory())) + SOCKET_NAME_LENGTH < SOCKET_PATH_LENGTH_MAX:
            settings |= {
                "spark.python.unix.domain.socket.enabled": "true",
                "spark.python.unix.domain.socket.dir": str(_directory()),
            }
    return settings


def is_local(master: str) -> bool:
    """Return whether the master is this process itself: `local`, `local[4]`, `local[*]`."""
    return master == "local" or master.startswith("local[")


def _open_classic(
    app_name: str, wanted_master: str | None, settings: dict[str, str], start_s_max: float
) -> SparkSession:
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    open_context = SparkContext._active_spark_context
    if open_context is not None:
        if wanted_master and open_context.master != wanted_master:
            problem = f"Spark is already open in this process with master {open_context.master!r}"
            raise SettingError("--master", wanted_master, problem, "stop that session first")
        return SparkSession(open_context)

    master = wanted_master or "local[*]"
    deadline_s = time.monotonic() + start_s_max
    _check_reachable(master)
    java = find_java()
    conf = SparkConf(loadDefaults=False)
    ours = session_settings(app_name, master, local_java_options(java))
    conf.setAll(list((ours | settings).items()))
    _prepare_environment(java, master)
    gateway = SparkContext._gateway  # Java still runs when an earlier session was stopped
    if gateway is None:
        with _log_file().open("ab") as log:
            # In a thread of its own, because launch_gateway never returns if Java exits at once without an
            # error.
            gateway = _within(
                start_s_max,
                lambda: launch_gateway(conf, {"stdout": log, "stderr": log}),  # type: ignore[no-untyped-call]
                f"Java {java.version} ({java.home})",
            )
    context = _within(
        max(deadline_s - time.monotonic(), 1.0),
        lambda: SparkContext(conf=conf, gateway=gateway),
        f"Spark with master {master!r}",
    )
    if not is_local(master):
        _wait_for_worker(context, deadline_s)
    session = SparkSession(context)
    if not is_local(master):
        ship_package(session)
    return session


def _open_remote(app_name: str, remote: str, start_s_max: float) -> SparkSession:
    missing = [name for name in CONNECT_PACKAGES if not _importable(name)]
    if missing:
        raise SessionError(
            f"--remote {remote}: Spark Connect needs packages that are not installed ({', '.join(missing)})\n"
            "hint: pip install 'betimes[connect]', or in a clone .venv/bin/pip install '.[connect]'"
        )
    _check_reachable(remote)
    from pyspark.sql import SparkSession

    def connect() -> SparkSession:
        session = SparkSession.builder.appName(app_name).remote(remote).create()
        session.conf.set(CAPITALS_KEY, "true")  # the first call that really reaches the server
        return session

    try:
        session = _within(start_s_max, connect, f"Spark Connect at {remote}")
    except SessionError:
        # otherwise no other kind of session could be opened
        os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)
        raise
    ship_package(session)
    return session


def _prepare_environment(java: Java, master: str) -> None:
    os.environ["JAVA_HOME"] = str(java.home)
    if is_local(master):
        # Workers would start the first python3 on the path, which may not have Betimes.
        os.environ["PYSPARK_PYTHON"] = sys.executable
    else:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable


def _within(limit_s: float, action: Callable[[], T], what: str) -> T:
    """Return the result of the action; raise a SessionError if it fails or exceeds the time limit."""
    found = in_background(action)
    if not wait([found], limit_s).done:
        raise SessionError(f"{what} has not started within {limit_s:.0f} s{_log_tail()}")
    error = found.exception()
    if error is not None:
        java_error: Any = getattr(error, "java_exception", None)  # it has Java's own message
        text = java_error.toString() if java_error is not None else str(error)
        cause = (text.strip().splitlines() or [type(error).__name__])[0]
        raise SessionError(f"{what} does not start: {cause}{_log_tail()}") from error
    return found.result()


def in_background(action: Callable[[], T]) -> Future[T]:
    """Run an action in a thread that does not delay the end of Python, as those of a pool would."""
    found: Future[T] = Future()

    def work() -> None:
        try:
            found.set_result(action())
        except BaseException as error:  # noqa: BLE001 -- raised again by `found.result`
            found.set_exception(error)

    threading.Thread(target=work, daemon=True, name="betimes-spark").start()
    return found


def _check_reachable(address: str) -> None:
    """Raise a SessionError when no host of a `spark://` or `sc://` address accepts a connection."""
    problems = []
    for host, port in host_ports(address):
        try:
            socket.create_connection((host, port), timeout=REACH_S_MAX).close()
        except OSError as error:
            problems.append(f"{host}:{port}: {error.strerror or error}")
        else:
            return
    if problems:
        option, started = ("--remote", "server") if address.startswith("sc") else ("--master", "master")
        hint = f"is Spark's {started} running there? without {option} the work is done on this machine"
        raise SessionError(f"{address} cannot be reached ({'; '.join(problems)})\nhint: {hint}")


def host_ports(address: str) -> list[tuple[str, int]]:
    """Return the hosts of a `spark://` or `sc://` address; none for other masters, which Spark resolves.

    >>> host_ports("spark://a:7077,b:7078"), host_ports("sc://c/;token=x"), host_ports("yarn")
    ([('a', 7077), ('b', 7078)], [('c', 15002)], [])
    """
    scheme, separator, rest = address.partition("://")
    if not separator or scheme not in {"spark", "sc"}:
        return []
    default = CONNECT_PORT if scheme == "sc" else 7077
    found = []
    for part in rest.split("/")[0].split(","):
        host, _, port = part.rpartition(":") if ":" in part else (part, "", str(default))
        if not host or not port.isdigit() or not 0 < int(port) < 65536:
            problem = f"{part!r} is not HOST:PORT"
            raise SettingError("address", address, problem, "for example spark://host:7077")
        found.append((host.strip("[]"), int(port)))
    return found


def _wait_for_worker(context: Any, deadline_s: float) -> None:
    """Wait for a first executor of the cluster: without one, jobs would wait for ever in silence."""
    if context.getConf().get("spark.dynamicAllocation.enabled", "false") == "true":
        return
    java_context = context._jsc.sc()
    while java_context.getExecutorMemoryStatus().size() < 2:  # the driver counts as one
        if time.monotonic() > deadline_s:
            context.stop()
            raise SessionError(f"{context.master} has given no worker{_log_tail()}")
        time.sleep(0.2)


def _importable(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # the parent of a dotted name
        return False


def _directory() -> Path:
    """Return a directory of this process, for Java's log and its sockets; it is deleted at exit."""
    global _own_directory  # noqa: PLW0603 -- one Java per process, one place for what it leaves
    if _own_directory is None:
        _own_directory = Path(tempfile.mkdtemp(prefix="betimes-"))
        atexit.register(shutil.rmtree, _own_directory, ignore_errors=True)
    return _own_directory


def _log_file() -> Path:
    return _directory() / "java.log"


def _log_tail() -> str:
    if not _log_file().exists():
        return ""
    lines = [line.strip() for line in _log_file().read_text(errors="replace").splitlines()]
    shown = [line for line in lines if line and not line.startswith(("at ", "..."))][-LOG_LINES_SHOWN:]
    return "\nSpark's last words:" + "".join(f"\n  {line[:200]}" for line in shown) if shown else ""


def zip_package(directory: Path) -> Path:
    """Write the package into one importable zip, and return its path; same code, same name.

    By that name workers recognise kernels that were compiled from the same code.
    """
    from betimes.kernels.compile import SHIPPED_AS  # this imports numba, which takes a while

    root = Path(betimes.__file__).parent
    files = sorted(file for file in root.rglob("*") if file.suffix in SHIPPED)
    contents = {f"betimes/{file.relative_to(root).as_posix()}": file.read_bytes() for file in files}
    digest = hashlib.sha256()
    for name, content in contents.items():
        digest.update(f"{name} {len(content)}\n".encode() + content)
    target = directory / f"{SHIPPED_AS}{digest.hexdigest()[:16]}.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return target


def ship_package(spark: SparkSession) -> None:
    """Send the package to the workers of this session; what it depends on must be installed there."""
    directory = Path(tempfile.mkdtemp(prefix="betimes-ship-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    package = zip_package(directory)
    if is_remote(spark):
        spark.addArtifacts(str(package), pyfile=True)
    else:
        spark.sparkContext.addPyFile(str(package))
