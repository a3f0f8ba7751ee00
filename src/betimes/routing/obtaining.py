"""How is a flow obtained for all at a node who want it, and moved where one of them needs it sooner?

One way is asked for at a time, under a name of its own unless all nodes share the flow's tree. Where a flow
comes that is too slow for somebody, another way is looked for beside the one that is held: links that both
take have their promise once. If there is one that is soon enough, all have the flow by that from then on.
Events are led over to it (`Branches.take`), and the way that it came by is held until those under way have
come; then it is given back. If there is none, who asked is refused, and the others keep what they have. Who
wants more than comes to a home has all of it moved likewise, to a way that has so much.
"""

from __future__ import annotations

import math

from betimes.routing.branches import HERE, Branches
from betimes.routing.claims import Claim, SharedFlow
from betimes.routing.dht import Tell
from betimes.routing.flows import read_flow
from betimes.routing.searches import Searches
from betimes.routing.signals import Denied, Granted, Invite, Reserve

Outcome = Tell | Claim  # a claim that has the flow by now, or that was given up


class Obtaining:
    """The flows that subscribers of one node have or ask for."""

    def __init__(self, me: str, branches: Branches, searches: Searches, *, answer_s_max: float) -> None:
        self._me = me
        self._branches = branches
        self._searches = searches
        self._answer_s_max = answer_s_max
        self._flows: dict[str, SharedFlow] = {}  # by the name that claims have
        self._named: dict[str, SharedFlow] = {}  # by the names of ways that they come by, or are asked for
        self._ways = 0  # that were asked for beside others

    def __len__(self) -> int:
        return len(self._flows)

    def seek(self, claim: Claim, now_s: float) -> list[Outcome]:
        """Have a flow that comes here already, wait with who asks for it, or ask."""
        shared = self._flows.setdefault(claim.flow, SharedFlow(claim.flow))
        shared.claims[claim.subscription] = claim
        if shared.comes_as is not None and shared.serves(claim):
            claim.hold(shared.comes_as, shared.latency_s)
            return [claim]
        return [] if shared.asked_as is not None else self._try_next(shared, now_s)

    def granted(self, granted: Granted, now_s: float) -> list[Outcome]:
        """Take in that a flow has come to this node; where nobody wants it any more, let it go."""
        shared = self._named.get(granted.flow)
        if shared is None:
            return self._release(granted.flow)
        if granted.flow == shared.comes_as:
            return []  # it is said twice
        asked, asker = shared.asked, shared.asker
        assert asked is not None, "a way that has a name and is not had is asked for"
        assert asker is not None, "likewise, by somebody"
        if asker.is_trial and shared.is_held and asker.is_served_by(granted.latency_s, asked.bytes_per_s):
            asker.hold(granted.flow, granted.latency_s)
            shared.left[granted.flow] = now_s + self._answer_s_max
            return [asker, *self._try_next(shared, now_s)]
        before = shared.comes_as
        concerned = shared.come(granted.flow, granted.latency_s, asked.bytes_per_s)
        if not concerned:
            if granted.flow == shared.name:
                asker.instead = asker.instead._replace(is_met=True)
            if shared.bound_s(asker) < asked.latency_s_left:  # others have it by now who need it sooner
                asker.apart.append(asked)
            return [*self._release(granted.flow), *self._try_next(shared, now_s)]
        outcomes: list[Outcome] = [*concerned]
        if before is not None:
            del self._named[before]
            shared.left[before] = now_s + self._answer_s_max
        if granted.flow != shared.name:
            outcomes += self._branches.take(HERE, granted.flow)
        return outcomes + self._try_next(shared, now_s)

    def denied(self, denied: Denied, now_s: float) -> list[Outcome]:
        """Take in that a way does not lead to this node: try the next."""
        shared = self._named.get(denied.flow)
        if shared is None or denied.flow != shared.asked_as:
            return []  # who holds the flow did not ask
        if denied.is_gone:
            waiting = [each for each in shared.claims.values() if not each.is_held]
            for claim in waiting:
                claim.is_gone = True
            return [outcome for claim in waiting for outcome in (claim, *self.let_go(claim))]
        if shared.asker is not None:
            shared.asker.instead = shared.asker.instead.or_better(denied.instead)
        return self._try_next(shared, now_s)

    def broken(self, name: str) -> tuple[list[Claim], list[Outcome]]:
        """Take in that a way is no longer; return who had the flow by it, or waited for that."""
        shared = self._named.get(name)
        if shared is None:
            return [], []
        is_lost = name == shared.comes_as
        concerned = [each for each in shared.claims.values() if each.is_held is is_lost]
        concerned.sort(key=lambda each: -each.bytes_per_s)  # who asks for less can share what is had for more
        return concerned, [outcome for claim in concerned for outcome in self.let_go(claim)]

    def let_go(self, claim: Claim) -> list[Outcome]:
        """Forget who wants a flow no longer, and give back what nobody else here needs."""
        shared = self._flows[claim.flow]
        del shared.claims[claim.subscription]
        outcomes: list[Outcome] = []
        if claim.comes_as in shared.left:  # it was only tried
            del shared.left[claim.comes_as]
            outcomes += self._release(claim.comes_as)
        if shared.comes_as is not None and not shared.holders:
            for name in (shared.comes_as, *shared.left):
                outcomes += self._release(name)
            del self._named[shared.comes_as]
            shared.comes_as, shared.latency_s, shared.bytes_per_s, shared.left = None, math.inf, 0, {}
        if shared.asked_as is not None and shared.asker is None:
            outcomes += self._release(shared.asked_as)
            self._end_question(shared)
        if not shared.claims:
            del self._flows[shared.name]
        return outcomes

    def beat(self, now_s: float) -> list[Outcome]:
        """Go on without answers that did not come in time; give back ways by which nothing comes any more."""
        outcomes: list[Outcome] = []
        for shared in list(self._flows.values()):
            for name in [name for name, until_s in shared.left.items() if until_s <= now_s]:
                del shared.left[name]
                outcomes += self._release(name)
            if shared.asked_as is not None and shared.deadline_s <= now_s:
                if shared.asker is not None:
                    shared.asker.all_answered = False
                outcomes += self._release(shared.asked_as)
                outcomes += self._try_next(shared, now_s)
        return outcomes

    def _try_next(self, shared: SharedFlow, now_s: float) -> list[Outcome]:
        """Ask for the next way of whose turn it is; who has none left is refused."""
        outcomes: list[Outcome] = []
        self._end_question(shared)
        while (claim := shared.asker) is not None:
            if claim.left and not shared.is_held:
                return outcomes + self._ask(shared, claim, claim.left.pop(), now_s)
            if claim.apart and (shared.is_held or claim.instead.is_met):
                return outcomes + self._ask(shared, claim, claim.apart.pop(), now_s, is_apart=True)
            claim.latency_s = min(claim.latency_s, shared.latency_s)
            claim.instead = shared.instead_for(claim)
            outcomes += [claim, *self.let_go(claim)]
        return outcomes

    def _ask(
        self,
        shared: SharedFlow,
        claim: Claim,
        way: Reserve | Invite,
        now_s: float,
        *,
        is_apart: bool = False,
    ) -> list[Outcome]:
        """Ask for a way that is enough for who asks and for all who have the flow."""
        bytes_per_s = max(claim.bytes_per_s, shared.bytes_per_s)
        name = self._name_of_way(shared, bytes_per_s, is_apart=is_apart)
        asked = way._replace(flow=name, bytes_per_s=bytes_per_s, latency_s_left=shared.bound_s(claim))
        shared.asked, shared.deadline_s = asked, now_s + self._answer_s_max
        self._named[name] = shared
        if isinstance(asked, Invite):
            return list(self._searches.invite(asked, now_s))
        return list(self._branches.reserve(HERE, asked, now_s))

    def _name_of_way(self, shared: SharedFlow, bytes_per_s: int, *, is_apart: bool) -> str:
        flow = read_flow(shared.name)
        if flow is None or (flow.home is None and not is_apart):
            return shared.name
        self._ways += 1
        return flow._replace(bytes_per_s=bytes_per_s, home=self._me, way=self._ways).name

    def _end_question(self, shared: SharedFlow) -> None:
        if shared.asked_as is not None and shared.asked_as != shared.comes_as:
            self._named.pop(shared.asked_as, None)
        shared.asked, shared.deadline_s = None, math.inf

    def _release(self, name: str) -> list[Outcome]:
        return list(self._branches.release(HERE, name))
