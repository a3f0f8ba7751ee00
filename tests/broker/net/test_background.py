"""Does a live broker answer by the newest model, and go on meanwhile?"""

from __future__ import annotations

import asyncio

import mqtt5
from tests.broker.admission.test_admission import (
    QUOTA_EXCEEDED,
    SECRET,
    asking,
    promising_hub,
    publish_model,
    statistics,
)
from tests.broker.talking import Client

from betimes.broker.admission.admission import worked_out
from betimes.broker.admission.model_packets import packed_model, signature_of
from betimes.broker.net.background import load_models


def test_a_live_broker_works_models_out_while_it_goes_on(caplog):
    caplog.set_level("INFO")
    worked_out(packed_model(statistics(), SECRET)[0])  # so that what is to be compiled is
    came = asyncio.Event()
    hub, admission = promising_hub(wake=came.set)

    async def test():
        loading = asyncio.create_task(load_models(admission, hub.sessions.values, came, lambda: 1.0))
        await asyncio.sleep(0)
        control = Client(hub, "control")
        for model in (b"junk", packed_model(statistics(), SECRET)[0], packed_model(statistics(), SECRET)[0]):
            done = len(caplog.records)
            code = publish_model(control, model, signature_of(model, SECRET))
            assert code == mqtt5.PubAckReasonCode.SUCCESS
            while len(caplog.records) == done:
                await asyncio.sleep(0.01)
        loading.cancel()

    asyncio.run(asyncio.wait_for(test(), 300.0))
    said = [each.getMessage() for each in caplog.records]
    assert "of no use" in said[0]
    assert "by a new model" in said[1]
    assert "no newer than the last" in said[2]
    suback = Client(hub, "ann").subscribe("news", properties=asking(0.999))
    assert suback.reason_codes[0].value == QUOTA_EXCEEDED
