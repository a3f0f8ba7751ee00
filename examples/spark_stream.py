"""How do Spark and a broker talk? Rows go out as events, and come back through a filter.

Needs a broker: `betimes broker --anonymous`. Then `.venv/bin/python examples/spark_stream.py`, perhaps with
another address.
"""

import sys

from betimes.pipeline.spark.session import open_session
from betimes.pipeline.streams.data_source import register

URL = sys.argv[1] if len(sys.argv) > 1 else "mqtt://127.0.0.1:1883"

spark = open_session("a stream that subscribes")
register(spark)

# a publisher: every column that has no meaning of its own is an attribute
cars = spark.createDataFrame(
    [("traffic/a4", 61.0, "car"), ("traffic/a4", 40.0, "car"), ("traffic/a8", 90.0, "lorry")],
    "topic string, speed double, kind string",
)
cars.write.format("betimes").mode("append").option("url", URL).option("deadline", "1h").save()

# a subscriber: the broker looks at the filter, and only what passes comes
fast = (
    spark.readStream.format("betimes")
    .schema("topic string, speed double, kind string")
    .option("url", URL)
    .option("topic", "traffic/#")
    .option("filter", "speed > 50")
    .option("starting", "earliest")
    .load()
)
query = fast.writeStream.format("memory").queryName("fast").trigger(availableNow=True).start()
query.awaitTermination()

for row in spark.table("fast").orderBy("speed").collect():
    print(f"{row.topic}: a {row.kind} at {row.speed:g}")
