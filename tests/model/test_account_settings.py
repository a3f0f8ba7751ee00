"""What do clients have that no file grants anything?"""

from __future__ import annotations

from betimes.model.account_settings import BESIDE_USERS, ONLY_ANONYMOUS, AccountSettings, Grants


def test_a_stated_grant_of_anonymous_clients_wins_over_the_defaults():
    assert AccountSettings().anonymous_grants(has_users=True) is BESIDE_USERS
    assert AccountSettings().anonymous_grants(has_users=False) is ONLY_ANONYMOUS
    stated = Grants(price_max=3.0)
    assert AccountSettings(anonymous=stated).anonymous_grants(has_users=True) is stated


def test_beside_users_all_anonymous_clients_together_pay_less_than_one_user_by_default():
    assert BESIDE_USERS.price_max < 1.0 <= Grants().price_max
    assert BESIDE_USERS.reserved_kb_per_s_max == 0.0
