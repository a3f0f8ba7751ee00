"""Does a server start only with certificates that it can use, and say what is wrong with others?"""

from __future__ import annotations

import ssl

import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from betimes.broker.net.tls import tls_context
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
