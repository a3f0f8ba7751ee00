"""The live page of `betimes dashboard`, made with NiceGUI and ECharts.

Begin reading at `feed.py`, which polls brokers, alarms and tables; `broker_watch.py` turns metrics into
shares and rates. `page.py` is the page of one browser, `charts.py` its charts, `event_tap.py` its messages.

May import what `reporting` may. The page is read-only; only a logged-in user can publish.
"""
