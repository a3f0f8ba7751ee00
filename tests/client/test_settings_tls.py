"""Is it said at once when certificates cannot be had, or make no sense?"""

from __future__ import annotations

import ssl

import pytest
import trustme

from betimes.client.addresses import read_address
from betimes.client.settings import tls_for
from betimes.model.errors import SettingError


def test_only_what_is_encrypted_has_certificates(tmp_path):
    assert tls_for(read_address("mqtt://a"), None) is None
    with pytest.raises(SettingError, match="is not encrypted"):
        tls_for(read_address("mqtt://a"), tmp_path / "ca.crt")


def test_a_file_of_certificates_is_trusted_in_place_of_the_systems(tmp_path):
    file = tmp_path / "ca.crt"
    trustme.CA().cert_pem.write_to_path(str(file))
    context = tls_for(read_address("mqtts://a"), file)
    assert isinstance(context, ssl.SSLContext)
    assert len(context.get_ca_certs()) == 1


def test_a_file_that_holds_no_certificates_is_named(tmp_path):
    file = tmp_path / "ca.crt"
    file.write_text("nothing")
    with pytest.raises(SettingError, match=r"ca\.crt"):
        tls_for(read_address("wss://a"), file)
