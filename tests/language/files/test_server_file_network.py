"""Is the [network] table of a configuration file read as it was meant?"""

from __future__ import annotations

import pytest

from betimes.language.files.server_file import read_server_file
from betimes.model.errors import FileMistakesError
from betimes.model.network_settings import LinkTerms

START = '[network]\nsecret = "a long secret of brokers"\n'


def network(text):
    found = read_server_file(START + text, "broker.toml").network
    assert found is not None
    return found


def test_a_file_without_the_table_has_no_network():
    assert read_server_file("", "broker.toml").network is None


def test_links_are_read_with_their_terms():
    found = network(
        """
        strategy = "eb"
        [[network.links]]
        to = "b2"
        address = "192.0.2.7:2883"
        rate = "50KB/s"
        [[network.links]]
        to = "b3"
        address = "b3.example"
        tls = true
        authorities = "ca.pem"
        certificate = "b1.crt"
        key = "b1.key"
        [[network.links]]
        to = "b4"
        """
    )
    assert (found.secret, found.strategy) == ("a long secret of brokers", "eb")
    assert found.links == (
        LinkTerms(to="b2", host="192.0.2.7", port=2883, rate_kb_per_s=50.0),
        LinkTerms(
            to="b3",
            host="b3.example",
            port=8883,
            tls=True,
            authorities="ca.pem",
            certificate="b1.crt",
            key="b1.key",
        ),
        LinkTerms(to="b4"),
    )


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [
        ("b2", "b2", 1883),
        ("[::1]:2000", "::1", 2000),
        ("[::1]", "::1", 1883),
        ("10.0.0.1:99", "10.0.0.1", 99),
    ],
)
def test_an_address_has_a_host_and_perhaps_a_port(address, host, port):
    (link,) = network(f'[[network.links]]\nto = "b2"\naddress = "{address}"').links
    assert (link.host, link.port) == (host, port)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[network]", "share one secret"),
        ('[network]\nsecret = "short"', "at least 16 letters"),
        ('[network]\nsecret = "a secret that is long enough"\nsecret_file = "too"', "share one secret"),
        (START + '[[network.links]]\naddress = "b2"', "to"),
        (START + '[[network.links]]\nto = "b2"\ncertificate = "b1.crt"', "over TLS only"),
        (START + '[[network.links]]\nto = "b2"\ntls = true\nkey = "b1.key"', "without a certificate"),
        (
            START + 'named_certificates = true\n[[network.links]]\nto = "b2"\naddress = "b2"\ntls = true',
            "shows no certificate",
        ),
        (START + '[[network.links]]\nto = "b2"\naddress = ":1883"', "no address"),
        (START + '[[network.links]]\nto = "b2"\naddress = "b2:70000"', "a port is a number"),
        (START + '[[network.links]]\nto = "b2"\n[[network.links]]\nto = "b2"', "already"),
        (START + '[[network.links]]\nto = "b2"\nrate = "0KB/s"', "rate"),
        (START + 'beat = "5s"', "longer than beat"),
        (START + 'refresh = "1us"', "at least 1s"),
        (START + "colour = 3", "colour"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text, problem):
    with pytest.raises(FileMistakesError, match=problem):
        read_server_file(text, "broker.toml")
