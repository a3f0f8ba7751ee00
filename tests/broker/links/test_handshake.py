"""Is a proof of the secret good for one connection and one side only?"""

from __future__ import annotations

from betimes.broker.links.handshake import NONCE_BYTES, Hello, LinkSecret, Side, Transcript, random_nonce

ONE, OTHER = b"1" * NONCE_BYTES, b"2" * NONCE_BYTES
SAID = Transcript(Hello(ONE, (("name", "a"),)), Hello(OTHER, (("name", "b"),)), b"tls")
SECRET = LinkSecret("a secret of the network", lambda: ONE)


def test_the_same_secret_makes_the_same_proof():
    again = LinkSecret("a secret of the network", lambda: OTHER)
    assert again.is_proof(SECRET.proof(Side.DIALLER, SAID), Side.DIALLER, SAID)


def test_a_proof_is_of_one_secret_one_side_and_all_that_was_said():
    proof = SECRET.proof(Side.ACCEPTOR, SAID)
    assert not LinkSecret("another secret", lambda: ONE).is_proof(proof, Side.ACCEPTOR, SAID)
    assert not SECRET.is_proof(proof, Side.DIALLER, SAID), "a reflected proof"
    for other in (
        SAID._replace(dialler=SAID.dialler._replace(nonce=OTHER)),
        SAID._replace(acceptor=SAID.acceptor._replace(nonce=ONE)),
        SAID._replace(dialler=SAID.dialler._replace(identity=(("name", "c"),))),
        SAID._replace(acceptor=SAID.acceptor._replace(identity=())),
        SAID._replace(dialler=SAID.acceptor, acceptor=SAID.dialler),
        SAID._replace(binding=b"another connection"),
    ):
        assert not SECRET.is_proof(proof, Side.ACCEPTOR, other)
    assert not SECRET.is_proof(b"", Side.ACCEPTOR, SAID)
    assert not SECRET.is_proof(proof[:-1], Side.ACCEPTOR, SAID)


def test_no_two_nonces_are_alike():
    assert len({random_nonce() for _ in range(100)}) == 100
    assert len(random_nonce()) == NONCE_BYTES
