"""The simulator: brokers, reservations, mobile subscribers and peers on a virtual clock.

Begin reading at `network.py`: `SimulatedNetwork` runs the state machine of `scheduling/broker.py` over links
with drawn speeds, on the clock of `agenda.py`. `worlds.py` makes a scenario from a recipe and a seed,
`traces.py` replays recorded events, `reservations.py` grants guarantees. `matching_stations.py` (001),
`mobility.py` (003), `reservation_overlay.py` with `transit_stub.py` (004) and `peers/` (002) simulate what
the other papers did. `chance.py` is the only source of random numbers.

Imports `model`, `language`, `matching`, `routing` and the five papers; no live broker, no Spark. It reads no
real clock: the same seed gives the same outcome.
"""
