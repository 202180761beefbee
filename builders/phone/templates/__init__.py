"""Goal templates: each draws one thing to do in one app, from what is on the phone.

A template takes the phone, a seeded source and a size (how many things where it is about several) and
returns a ``Part``, or None where this phone offers nothing to draw from. Names are ``app.what``.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from ..goals import Part
from ..phone import Phone
from . import device, people, things

Template = Callable[[Phone, Random, int], Part | None]

TEMPLATES: dict[str, Template] = {
    "settings.switch": device.settings_switch,
    "settings.switches": device.settings_switches,
    "settings.choice": device.settings_choice,
    "settings.level": device.settings_level,
    "settings.about": device.settings_about,
    "clock.alarm": device.clock_alarm,
    "clock.alarms": device.clock_alarms,
    "clock.switch": device.clock_switch,
    "clock.delete": device.clock_delete,
    "clock.timer": device.clock_timer,
    "clock.label": device.clock_label,
    "files.move": device.files_move,
    "files.trash": device.files_trash,
    "files.star": device.files_star,
    "files.folder": device.files_folder,
    "files.missing": device.files_missing,
    "contacts.add": people.contacts_add,
    "contacts.add_many": people.contacts_add_many,
    "contacts.change": people.contacts_change,
    "contacts.delete": people.contacts_delete,
    "contacts.star": people.contacts_star,
    "contacts.number": people.contacts_number,
    "contacts.nobody": people.contacts_nobody,
    "messages.send": people.messages_send,
    "messages.send_many": people.messages_send_many,
    "messages.unsend": people.messages_unsend,
    "messages.last": people.messages_last,
    "calendar.add": people.calendar_add,
    "calendar.add_many": people.calendar_add_many,
    "calendar.delete": people.calendar_delete,
    "calendar.move": people.calendar_move,
    "calendar.when": people.calendar_when,
    "notes.add": things.notes_add,
    "notes.rewrite": things.notes_rewrite,
    "notes.delete": things.notes_delete,
    "notes.pin": things.notes_pin,
    "notes.tick": things.notes_tick,
    "notes.items": things.notes_items,
    "notes.text": things.notes_text,
    "shop.cart": things.shop_cart,
    "shop.order": things.shop_order,
    "shop.favourite": things.shop_favourite,
    "shop.price": things.shop_price,
    "shop.sold_out": things.shop_sold_out,
}
"""Every template by name."""
INFEASIBLE = ("contacts.nobody", "files.missing", "shop.sold_out")
"""Templates of goals that can't be reached."""
