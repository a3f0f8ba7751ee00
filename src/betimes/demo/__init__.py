"""`betimes demo`: real flights over live brokers, or with `--simulated` the paper's network on Spark.

Begin reading at `live.py`, which runs both parts and prints the tables. `flights.py` has the events,
`flights.toml` the network, `clients.py` the MQTT clients of the replay, `scores.py` the counts, `cast.py`
three more clients (one resumes, one has a guarantee, one is refused), `story.py` the learning between the
parts and the page. `simulated.py` is the demo without brokers.

May import everything but `cli`. It defines no option; that is `cli/demo.py`.
"""
