"""Who can be guaranteed what? Three subscribers on an overlay of 60 nodes, one of which then crashes."""

from betimes.language.guarantees import read_guarantee, read_profile
from betimes.language.quantities import show_duration, show_rate
from betimes.reservations.outcomes import Accepted, Interrupted
from betimes.reservations.overlay_node import ReservationOverlaySettings
from betimes.reservations.requests import ReservationRequest
from betimes.reservations.signals import Manner
from betimes.simulator.reservation_overlay import ReservationOverlay
from betimes.simulator.transit_stub import TransitStubWorld, latencies_s

world = TransitStubWorld(domains=2, transit_nodes=2, stubs=2, stub_nodes=7)
overlay = ReservationOverlay(
    latencies_s(world, seed=1), 1, settings=ReservationOverlaySettings(), link_bytes_per_s=50_000
)
overlay.grow(beats=10)

profile = read_profile("bandwidth = 15KB/s")
overlay.advertise("n1", "VehicleInfo", int(1000 * profile.bandwidth_kb_per_s))
overlay.run_until(overlay.agenda.now_s + 1.0)
asked = {
    "camera": ("n20", "bandwidth = any and latency < 200ms"),
    "archive": ("n33", "bandwidth = 40KB/s"),
    "hasty": ("n40", "latency < 1ms"),
}
for name, (node, text) in asked.items():
    guarantee = read_guarantee(text)
    stated = guarantee.bandwidth_kb_per_s
    request = ReservationRequest(
        subscription=name,
        event_type="VehicleInfo",
        bytes_per_s=None if stated is None else int(1000 * stated),
        latency_s_max=guarantee.latency_s_max,
        manner=Manner.COORDINATES,
    )
    overlay.subscribe(node, request)
overlay.run_until(overlay.agenda.now_s + 5.0)


def print_news() -> None:
    """Print what subscribers were told, and forget it."""
    for news in overlay.news:
        if isinstance(news, Accepted):
            rate = show_rate(news.bytes_per_s / 1000)
            print(f"{news.subscription}: has {rate}, {show_duration(round(news.latency_s, 4))} away")
        elif isinstance(news, Interrupted):
            print(f"{news.subscription}: interrupted")
        else:
            sure = "definitely" if news.is_definite else "perhaps"
            fastest = show_duration(round(news.latency_s, 4))
            print(f"{news.subscription}: refused, {news.reason}, {sure}; the fastest offer takes {fastest}")
    overlay.news.clear()


print_news()
(flow,) = overlay.nodes["n20"].branches.flows
crashed = overlay.nodes["n20"].branches.upstream(flow)
assert crashed is not None
overlay.crash(crashed)
print("the node before the camera's crashes")
overlay.run_until(overlay.agenda.now_s + 30.0)
print_news()
