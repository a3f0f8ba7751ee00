"""The control centre (`betimes control`): learns a model from telemetry and sends it to the brokers.

Begin reading at `rounds.py`: a round runs the pipeline, predicts, and sends the signed model. `stream.py`
does the same batch by batch and raises alarms; it receives telemetry over MQTT where brokers and centre share
no directory.

May import `terminal` and everything below it, but not `reporting`. It decides on no subscription: brokers do,
by the model.
"""
