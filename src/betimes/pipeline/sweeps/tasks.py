"""One row of a sweep inside a Spark task.

Whatever the run raises, unusual exceptions included, becomes an outcome. `run_here` runs it in the worker;
`run_alone` in a process of its own, so that a crash (a signal, `os._exit`) is an outcome too.
"""

from __future__ import annotations

import json
import os
import signal
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

SweepFunction = Callable[[Mapping[str, Any]], Mapping[str, Any]]

TRACE_LINES_MAX = 12
MESSAGE_CHARACTERS_MAX = 2000
MEASURED = "run_s"  # a column that the sweep adds to the results

OUTCOME_SCHEMA = pa.schema(
    [
        ("row", pa.int64()),
        ("result", pa.string()),
        ("run_s", pa.float64()),
        ("error", pa.string()),
        ("message", pa.string()),
        ("trace", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOutcome:
    """One run: its result as JSON, or the error's type, message and last lines of its traceback."""

    row: int
    result: str | None = None
    run_s: float = 0.0
    error: str | None = None
    message: str | None = None
    trace: str | None = None

    def as_row(self) -> dict[str, Any]:
        """Return the outcome as a row of OUTCOME_SCHEMA."""
        return asdict(self)

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> TaskOutcome:
        """Return the outcome in a row of OUTCOME_SCHEMA."""
        return cls(**row)


def run_here(run: SweepFunction, row: int, parameters_text: str) -> TaskOutcome:
    """Run one row in this process."""
    began_s = time.perf_counter()
    try:
        parameters = json.loads(parameters_text)
        result = _result_text(run(parameters), parameters)
    except BaseException as error:  # noqa: BLE001 -- SystemExit and the like must not lose the other rows
        return _failed(row, error, time.perf_counter() - began_s)
    return TaskOutcome(row=row, result=result, run_s=time.perf_counter() - began_s)


def run_alone(run: SweepFunction, row: int, parameters_text: str) -> TaskOutcome:
    """Run one row in a forked process; a process that dies becomes a failure."""
    began_s = time.perf_counter()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _work_and_leave(run, row, parameters_text, reading, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    took_s = time.perf_counter() - began_s
    if not answer:
        return TaskOutcome(row=row, error="ProcessDied", message=_how_it_died(status), run_s=took_s)
    return TaskOutcome.from_row(json.loads(answer))


def _work_and_leave(run: SweepFunction, row: int, parameters_text: str, reading: int, writing: int) -> None:
    code = 1
    try:
        os.close(reading)
        outcome = run_here(run, row, parameters_text)
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(json.dumps(outcome.as_row()).encode())
        code = 0
    finally:
        # Not sys.exit: the worker's sockets and exit handlers belong to the parent.
        os._exit(code)


def _how_it_died(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        return f"the process running it was killed by {signal.Signals(-code).name}"
    return f"the process running it ended with code {code} and without a result"


def _result_text(result: object, parameters: Mapping[str, Any]) -> str:
    if not isinstance(result, Mapping):
        raise TypeError(f"a run returns a mapping of names to values, not {type(result).__name__}")
    names = [name for name in result if name in parameters and result[name] != parameters[name]]
    names += [MEASURED] if MEASURED in result else []
    if names:
        raise ValueError(
            f"the run's result would hide a parameter or column of the sweep: {', '.join(names)}"
        )
    return json.dumps(dict(result), default=_plain)


def _plain(value: object) -> Any:
    """Return numpy's scalars and arrays as Python's; json calls this only for types that it does not know."""
    for convert in ("item", "tolist"):
        method = getattr(value, convert, None)
        if method is not None and (convert == "tolist" or getattr(value, "ndim", 1) == 0):
            return method()
    raise TypeError(
        f"a run's result may hold numbers, texts, flags, lists and mappings, not {type(value).__name__}"
    )


def _failed(row: int, error: BaseException, run_s: float) -> TaskOutcome:
    try:
        message = str(error)
    except Exception as second:  # noqa: BLE001 -- an error that cannot even say what it is
        message = f"(its message cannot be had: {type(second).__name__})"
    own_frame = error.__traceback__
    lines = "".join(traceback.format_tb(own_frame.tb_next if own_frame else None)).splitlines()
    return TaskOutcome(
        row=row,
        run_s=run_s,
        error=type(error).__name__,
        message=message[:MESSAGE_CHARACTERS_MAX],
        trace="\n".join(lines[-TRACE_LINES_MAX:]),
    )
