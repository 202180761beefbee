"""The report says what is odd about the labels."""

import re

from solar_rl.report import write_report


def test_the_page_names_oddities_and_direction_confusion(dataset):
    page = write_report(dataset).read_text(encoding="utf-8")
    section = re.search(r'<section[^>]*id="labels".*?</section>', page, re.DOTALL)
    assert section, "the section has an anchor"
    for title in ("Oddities of the labels", "Scroll directions", "Scroll instructions"):
        assert title in section[0]
    assert "steps without instruction" in section[0]
