"""Experts for the inbox and the social feed."""

from __future__ import annotations

from ..page import Element, Page
from .moves import Move, Touch, asked, by_id, fill, first, quoted, submit


def inbox(page: Page) -> Move:
    """Star, delete, answer or forward the email of a sender."""
    [sender] = asked(page, r"email by (\S+) and")
    if page.all(id="reply"):
        return fill(by_id(page, "reply-text"), quoted(page)[0], "the answer") or submit(page, "send-reply")
    if page.all(id="forward"):
        [receiver] = asked(page, r"forward that email to (.+)\.$")
        return _address(page, receiver) or submit(page, "send-forward")
    if page.all(id="email"):
        return _in_email(page, sender)
    thread = _thread(page, sender)
    for icon, words in (("trash", "trash icon"), ("star", "star icon")):
        if words in page.goal:
            return _icon(page, icon, thread)
    return Touch(thread, f"Open the email by {sender}")


def _in_email(page: Page, sender: str) -> Move:
    email = by_id(page, "email")
    if page.all("email-sender", inside=email)[0].text != sender:
        return Touch(by_id(page, "close-email"), "Go back to the inbox")
    for icon, words in (("trash", "trash icon"), ("star", "star icon")):
        if words in page.goal:
            return _icon(page, icon, email)
    way = "reply" if "reply" in page.goal else "forward"
    return Touch(first(page.all(f"email-{way}"), way), f"Click {way}")


def _icon(page: Page, name: str, inside: Element) -> Move:
    return Touch(first(page.all(name, inside=inside), name), f"Click the {name} icon")


def _thread(page: Page, sender: str) -> Element:
    name = first(page.all("email-sender", text=sender), f"email by {sender}")
    return next(around for around in name.above() if "email-thread" in around.classes)


def _address(page: Page, receiver: str) -> Move | None:
    field = first(page.all("forward-sender"), "field To")
    return fill(field, receiver, "the field To")


def social(page: Page) -> Move:
    """Click one kind of button under a user's posts, under as many as asked, then submit."""
    [kind] = quoted(page)
    [user] = asked(page, r"(@\w+)")
    posts = [post for post in page.all("media") if page.all("username", text=user, inside=post)]
    buttons = [first(page.all(kind.lower(), inside=post), f"button {kind}") for post in posts]
    wanted = len(buttons)
    if "on all posts" not in page.goal:
        wanted = int(asked(page, r"button on (\d+) post")[0])
    clicked = [one for one in buttons if "active" in one.classes]
    left = [one for one in buttons if one not in clicked]
    if len(clicked) < wanted:
        return Touch(first(left, f"post by {user}"), f"Click {kind} under a post by {user}")
    return Touch(first(page.all(tag="button", text="Submit"), "Submit"), "Click Submit")
