"""Where does a server listen that was told little?"""

from __future__ import annotations

from betimes.model.server_settings import Door, ServerSettings


def test_a_server_that_is_told_nothing_listens_on_the_port_of_mqtt():
    assert ServerSettings().doors == (Door(port=1883),)


def test_the_port_of_mqtt_over_tls_is_another():
    (door,) = ServerSettings(certificate="c", key="k", client_ca="ca").doors
    assert door == Door(port=8883, certificate="c", key="k", client_ca="ca")


def test_other_doors_stand_in_for_the_first_unless_it_has_a_port_or_a_certificate():
    other = Door(port=5)
    assert ServerSettings(more_doors=(other,)).doors == (other,)
    assert ServerSettings(more_doors=(other,), port=0).doors == (Door(port=0), other)
    first, second = ServerSettings(more_doors=(other,), certificate="c").doors
    assert (first.port, second) == (8883, other)
