"""How do tests write a schema without Java, which Spark asks to read one?"""

from __future__ import annotations

from pyspark.sql import types

KINDS: dict[str, types.DataType] = {
    "string": types.StringType(),
    "binary": types.BinaryType(),
    "double": types.DoubleType(),
    "float": types.FloatType(),
    "bigint": types.LongType(),
    "int": types.IntegerType(),
    "smallint": types.ShortType(),
    "decimal(10,2)": types.DecimalType(10, 2),
    "boolean": types.BooleanType(),
    "timestamp": types.TimestampType(),
    "array<int>": types.ArrayType(types.IntegerType()),
    "array<struct<key:string,value:binary>>": types.ArrayType(
        types.StructType(
            [types.StructField("key", types.StringType()), types.StructField("value", types.BinaryType())]
        )
    ),
    "map<string,string>": types.MapType(types.StringType(), types.StringType()),
}


def schema_of(text: str) -> types.StructType:
    """Return the schema that a text such as `speed double, kind string` states."""
    pairs = [each.split(" ") for each in text.split(", ")]
    return types.StructType([types.StructField(name, KINDS[kind]) for name, kind in pairs])
