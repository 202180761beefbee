"""Draw goals about people: contacts, messages and events."""

from __future__ import annotations

from random import Random

from ..apps.agenda import MONTHS, TIMES, Agenda
from ..apps.contacts import Contacts, full_name, phone_number
from ..apps.messages import Messages
from ..goals import Look, Part
from ..phone import Phone
from ..stock import EVENTS, MESSAGES
from .words import listed, pick


def _new_people(phone: Phone, rng: Random, count: int) -> list[tuple[str, str]]:
    taken = set(phone.get(Contacts).people)
    people: dict[str, str] = {}
    while len(people) < count:
        name = full_name(rng)
        if name not in taken:
            people[name] = phone_number(rng)
    return list(people.items())


def contacts_add(phone: Phone, rng: Random, size: int) -> Part | None:
    """Add one person."""
    ((name, number),) = _new_people(phone, rng, 1)
    text = f"add {name} to the contacts with the number {number}"
    return Part("contacts.add", "contacts", text, (("contact", name, number),))


def contacts_add_many(phone: Phone, rng: Random, size: int) -> Part | None:
    """Add several people."""
    people = _new_people(phone, rng, max(2, size))
    words = listed([f"{name} ({number})" for name, number in people])
    facts = tuple(("contact", name, number) for name, number in people)
    return Part("contacts.add_many", "contacts", f"add {len(people)} contacts: {words}", facts)


def contacts_change(phone: Phone, rng: Random, size: int) -> Part | None:
    """Change a number."""
    people = phone.get(Contacts).people
    name, number = rng.choice(sorted(people)), phone_number(rng)
    text = f"change the number of {name} in the contacts to {number}"
    return Part(
        "contacts.change", "contacts", text, (("contact", name, number),), (("contact", name, people[name]),)
    )


def contacts_delete(phone: Phone, rng: Random, size: int) -> Part | None:
    """Delete one or more people who are no favourites."""
    contacts = phone.get(Contacts)
    names = pick(rng, sorted(set(contacts.people) - contacts.starred), max(1, size // 2))
    removes = tuple(("contact", name, contacts.people[name]) for name in names)
    return Part("contacts.delete", "contacts", f"delete {listed(names)} from the contacts", (), removes)


def contacts_star(phone: Phone, rng: Random, size: int) -> Part | None:
    """Make people favourites."""
    contacts = phone.get(Contacts)
    names = pick(rng, sorted(set(contacts.people) - contacts.starred), max(1, size // 2))
    text = f"mark {listed(names)} as {'a favourite' if len(names) == 1 else 'favourites'} in the contacts"
    return Part("contacts.star", "contacts", text, tuple(("star", name) for name in names))


def contacts_number(phone: Phone, rng: Random, size: int) -> Part | None:
    """Ask for a number."""
    people = phone.get(Contacts).people
    name = rng.choice(sorted(people))
    look = Look("contacts", ("card", name))
    return Part(
        "contacts.number",
        "contacts",
        f"what is the phone number of {name}?",
        looks=(look,),
        answer=people[name],
    )


def contacts_nobody(phone: Phone, rng: Random, size: int) -> Part | None:
    """Ask to change somebody who isn't there."""
    ((name, number),) = _new_people(phone, rng, 1)
    text = f"change the number of the existing contact {name} to {number}"
    last = f"open:{max(phone.get(Contacts).people)}"
    return Part(
        "contacts.nobody", "contacts", text, looks=(Look("contacts", ("home",), last),), infeasible=True
    )


def _unsent(phone: Phone, rng: Random, name: str) -> str:
    sent = {text for _, text in phone.get(Messages).chats[name]}
    return rng.choice([text for text in MESSAGES if text not in sent])


def messages_send(phone: Phone, rng: Random, size: int) -> Part | None:
    """Write to one person."""
    name = rng.choice(phone.get(Messages).people)
    text = _unsent(phone, rng, name)
    return Part("messages.send", "messages", f"send {name} the message '{text}'", (("message", name, text),))


def messages_send_many(phone: Phone, rng: Random, size: int) -> Part | None:
    """Write the same to several people."""
    names = pick(rng, phone.get(Messages).people, max(2, size))
    sent = {text for name in names for _, text in phone.get(Messages).chats[name]}
    text = rng.choice([line for line in MESSAGES if line not in sent])
    facts = tuple(("message", name, text) for name in names)
    return Part("messages.send_many", "messages", f"send the message '{text}' to {listed(names)}", facts)


def messages_unsend(phone: Phone, rng: Random, size: int) -> Part | None:
    """Delete one's own message."""
    sent = sorted(phone.get(Messages).facts())
    if not sent:
        return None
    fact = rng.choice(sent)
    text = f"delete my message '{fact[2]}' from the conversation with {fact[1]}"
    return Part("messages.unsend", "messages", text, (), (fact,))


def messages_last(phone: Phone, rng: Random, size: int) -> Part | None:
    """Ask what somebody wrote last."""
    chats = phone.get(Messages).chats
    name = rng.choice([n for n in sorted(chats) if chats[n]])
    answer = [text for who, text in chats[name] if who == "them"][-1]
    look = Look("messages", ("chat", name))
    return Part(
        "messages.last",
        "messages",
        f"what did {name} write in the last message to me?",
        looks=(look,),
        answer=answer,
    )


def _new_event(phone: Phone, rng: Random, reach: int, title: str) -> tuple[str, str, str]:
    now = phone.get(Agenda).month
    month = min(max(now + rng.randint(-reach, reach), 1), 12)
    return f"{MONTHS[month - 1]} {rng.randint(1, 28)}", rng.choice(TIMES), title


def calendar_add(phone: Phone, rng: Random, size: int) -> Part | None:
    """Enter one event."""
    title = rng.choice(_free_titles(phone))
    day, time, title = _new_event(phone, rng, 1, title)
    return Part(
        "calendar.add",
        "calendar",
        f"add the event '{title}' on {day} at {time}",
        (("event", day, time, title),),
    )


def calendar_add_many(phone: Phone, rng: Random, size: int) -> Part | None:
    """Enter several events."""
    events = [_new_event(phone, rng, 1, title) for title in pick(rng, _free_titles(phone), max(2, size))]
    words = listed([f"'{title}' on {day} at {time}" for day, time, title in events])
    return Part(
        "calendar.add_many", "calendar", f"add these events: {words}", tuple(("event", *e) for e in events)
    )


def _free_titles(phone: Phone) -> list[str]:
    taken = {title for _, _, title in phone.get(Agenda).events}
    return [title for title in EVENTS if title not in taken]


def calendar_delete(phone: Phone, rng: Random, size: int) -> Part | None:
    """Delete an event."""
    event = rng.choice(sorted(phone.get(Agenda).events))
    text = f"delete the event '{event[2]}' on {event[0]}"
    return Part("calendar.delete", "calendar", text, (), (("event", *event),))


def calendar_move(phone: Phone, rng: Random, size: int) -> Part | None:
    """Move an event to another time."""
    day, time, title = event = rng.choice(sorted(phone.get(Agenda).events))
    later = rng.choice([t for t in TIMES if t != time])
    text = f"move the event '{title}' on {day} from {time} to {later}"
    return Part("calendar.move", "calendar", text, (("event", day, later, title),), (("event", *event),))


def calendar_when(phone: Phone, rng: Random, size: int) -> Part | None:
    """Ask when an event starts."""
    day, time, title = rng.choice(sorted(phone.get(Agenda).events))
    look = Look("calendar", ("day", day), f"open:{time}|{title}")
    return Part(
        "calendar.when",
        "calendar",
        f"at what time does '{title}' start on {day}?",
        looks=(look,),
        answer=time,
    )
