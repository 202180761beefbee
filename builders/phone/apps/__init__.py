"""The apps of the simulated phone, by name."""

from __future__ import annotations

from .agenda import Agenda
from .base import App, Fact, Intent, Route
from .clock import Clock
from .contacts import Contacts
from .files import Files
from .launcher import Launcher
from .messages import Messages
from .notes import Notes
from .settings import Settings
from .shop import Shop

APPS: dict[str, type[App]] = {
    app.name: app for app in (Agenda, Clock, Contacts, Files, Messages, Notes, Settings, Shop)
}
"""Every app a goal can be about."""

__all__ = ["APPS", "App", "Fact", "Intent", "Launcher", "Route"]
