"""Access control: authentication by a password file, authorisation by an access control list (ACL).

Begin reading at `authentication.py` (`AccessControl`, both together). `passwords.py` has the scrypt hashes,
`acl.py` Mosquitto's ACL format.

It may import nothing of the broker, only `language`, `matching` and `model`. It opens no file and no thread:
the server reads the files again on reload, and runs slow checks in a thread.
"""
