"""Does a server start only with certificates that it can use, and say what is wrong with others?"""

from __future__ import annotations

import asyncio
import ssl

import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from betimes.broker.core.connection import Channel
from betimes.broker.net.tls import channel_of, link_tls_context, tls_context
from betimes.model.errors import BetimesError


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def files(authority, tmp_path):
    """Return the names of a certificate, its key, both in one, and the authority's certificate."""
    made = authority.issue_cert("127.0.0.1")
    names = {name: tmp_path / f"{name}.pem" for name in ("certificate", "key", "both", "authority")}
    made.cert_chain_pems[0].write_to_path(names["certificate"])
    made.private_key_pem.write_to_path(names["key"])
    made.private_key_and_cert_chain_pem.write_to_path(names["both"])
    authority.cert_pem.write_to_path(names["authority"])
    return {name: str(path) for name, path in names.items()}


def problem(*arguments: str | None) -> str:
    with pytest.raises(BetimesError) as caught:
        tls_context(*arguments)  # type: ignore[arg-type]
    return str(caught.value)


def test_a_key_may_stand_beside_its_certificate_or_in_its_file(files):
    for context in (tls_context(files["certificate"], files["key"]), tls_context(files["both"])):
        assert context.verify_mode is ssl.CERT_NONE
        assert context.minimum_version is ssl.TLSVersion.TLSv1_2


def test_clients_are_asked_for_a_certificate_only_if_told_so(files):
    assert tls_context(files["both"], client_ca=files["authority"]).verify_mode is ssl.CERT_REQUIRED


def test_a_file_that_is_missing_or_no_file_is_named(files, tmp_path):
    none, folder = str(tmp_path / "none"), str(tmp_path)
    for arguments in ((none,), (files["certificate"], none), (files["both"], None, none)):
        assert problem(*arguments).startswith(f"{none}: there is no such file\nhint: ")
    for arguments in ((folder,), (files["certificate"], folder), (files["both"], None, folder)):
        assert problem(*arguments) == f"{folder}: is a directory, and a file was expected"


def test_what_is_wrong_with_a_file_is_said(files, authority, tmp_path):
    other = tmp_path / "other.pem"
    authority.issue_cert("other").private_key_pem.write_to_path(other)
    words = tmp_path / "words"
    words.write_text("not a certificate")
    broken = tmp_path / "broken"
    broken.write_text("-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\nPRIVATE KEY\n")
    assert "does not belong to the certificate" in problem(files["certificate"], str(other))
    assert f"{words}: there is no certificate" in problem(str(words), files["key"])
    assert f"{files['certificate']}: there is no key" in problem(files["certificate"])
    assert f"{words}: there is no key" in problem(files["certificate"], str(words))
    assert f"{broken}: this certificate, or its key, cannot be used" in problem(str(broken))
    assert f"{words}: there is no certificate" in problem(files["both"], None, str(words))


def test_a_link_trusts_its_authorities_and_checks_the_host_unless_the_broker_is_named(files, tmp_path):
    context = link_tls_context(files["authority"], files["both"])
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert len(context.get_ca_certs()) == 1, "and none of the machine's"
    assert not link_tls_context(files["authority"], checks_host=False).check_hostname
    with pytest.raises(BetimesError, match="no such file"):
        link_tls_context(str(tmp_path / "none"))
    with pytest.raises(BetimesError, match="there is no key"):
        link_tls_context(None, files["certificate"])


@pytest.mark.parametrize(
    ("shown", "names"),
    [
        (None, set()),
        ({}, set()),
        ({"subject": ((("organizationName", "o"),), (("commonName", "a"),))}, {"a"}),
        ({"subject": ((("commonName", "a"),),), "subjectAltName": (("DNS", "b"), ("DNS", "c"))}, {"b", "c"}),
        ({"subject": ((("commonName", "a"),),), "subjectAltName": (("IP Address", "::1"),)}, {"a"}),
    ],
)
def test_a_certificate_names_hosts_or_else_has_a_common_name(shown, names):
    channel = channel_of(Transport(Tls(shown)))
    assert channel == Channel(b"unique", frozenset(names))


def test_without_tls_there_are_no_names():
    assert channel_of(Transport(None)) == Channel()


class Tls:
    """What TLS says of the other side."""

    def __init__(self, shown):
        self.getpeercert = lambda: shown

    def get_channel_binding(self, _kind):
        return b"unique"


class Transport(asyncio.BaseTransport):
    """A transport with or without TLS."""

    def __init__(self, tls):
        super().__init__({"ssl_object": tls})


def test_a_locked_key_is_refused_and_nobody_is_asked(files, tmp_path):
    key = serialization.load_pem_private_key((tmp_path / "key.pem").read_bytes(), None)
    locked = tmp_path / "locked.pem"
    locked.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    assert "locked by a password" in problem(files["certificate"], str(locked))
