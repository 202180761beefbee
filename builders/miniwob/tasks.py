"""Which tasks of MiniWoB++ there are to demonstrate and to measure on, named before anything was measured."""

from __future__ import annotations

SUITE = (
    "book-flight-nodelay",
    "buy-ticket",
    "choose-date-nodelay",
    "click-button",
    "click-checkboxes-large",
    "click-tab-2-hard",
    "email-inbox",
    "email-inbox-forward",
    "email-inbox-star-reply",
    "enter-text",
    "form-sequence",
    "form-sequence-3",
    "guess-number",
    "login-user-popup",
    "order-food",
    "phone-book",
    "search-engine",
    "social-media-all",
    "social-media-some",
    "use-autocomplete-nodelay",
)
"""The suite that results are reported on."""

SIMPLE = (
    "click-button-sequence",
    "click-checkboxes",
    "click-link",
    "click-tab",
    "click-test",
    "enter-password",
    "focus-text",
    "login-user",
)
"""One to five steps each: for first tries and tests."""

LEFT_OUT = {
    "click-pie": "its animation makes the same seed look different",
    "click-pie-nodelay": "its animation makes the same seed look different",
    "form-sequence-2": "it rewards any radio button",
    "stock-market": "its price follows the clock",
}
"""Tasks that are refused, and why."""
