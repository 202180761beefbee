"""Adversarial cases for texts: what must match, what must not, and how far."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import app_similarity, f1
from strategies import names, texts

from solar_rl.text import app_key, normalise, similarity, token_f1, tokens


@pytest.mark.parametrize(
    ("predicted", "label", "score"),
    [
        pytest.param("Buy  MILK!", "buy milk", 1.0, id="case, spaces and punctuation make no difference"),
        pytest.param("ＢＵＹ", "buy", 1.0, id="full-width letters are letters"),
        pytest.param("ﬁne", "fine", 1.0, id="ligatures are letters"),
        pytest.param("Straße", "STRASSE", 1.0, id="casefold, not lower"),
        pytest.param("cafe\u0301", "café", 1.0, id="composed equals decomposed"),
        pytest.param("zoo\u00ad\u200dm", "zoom", 1.0, id="characters without a glyph don't count"),
        pytest.param("a\u200bb", "a b", 1.0, id="a zero-width space is a space"),
        pytest.param("a\u00a0b", "a b", 1.0, id="a no-break space is a space"),
        pytest.param("milk buy", "buy milk", 1.0, id="order is free"),
        pytest.param("25", "5", 0.0, id="a number is no part of another"),
        pytest.param("at", "cat", 0.0, id="no containment inside words"),
        pytest.param("milk", "buy milk", 2 / 3, id="half of the words"),
        pytest.param("milk milk milk", "milk", 0.5, id="repeats are counted"),
        pytest.param("buy milk milk", "buy buy milk", 2 / 3, id="multiplicities on both sides"),
        pytest.param("", "", 1.0, id="both empty"),
        pytest.param(" \t\n", "", 1.0, id="white space alone is empty"),
        pytest.param("", "milk", 0.0, id="an empty answer is no hit"),
        pytest.param("milk", "", 0.0, id="an empty label is no hit for words"),
        pytest.param("!", "?", 0.0, id="punctuation alone is compared, not emptied"),
        pytest.param("???", "???", 1.0, id="equal punctuation"),
        pytest.param("!", "", 0.0, id="punctuation is not empty"),
        pytest.param("3 €", "3 $", 0.5, id="symbols are tokens"),
        pytest.param("C++", "C", 0.5, id="the language is not the letter"),
        pytest.param("我想喝茶", "我想喝水", 0.75, id="Han by character"),
        pytest.param("ガ", "カ\u3099", 1.0, id="kana composed and decomposed"),
        pytest.param("안녕", "안전", 0.5, id="Hangul by syllable"),
        pytest.param("买2杯tea", "买 2 杯 tea", 1.0, id="mixed scripts split at their border"),
        pytest.param("anna@example.com", "anna example com", 1.0, id="addresses split at punctuation"),
        pytest.param("snake_case", "snake case", 1.0, id="the underscore is punctuation"),
    ],
)
def test_token_f1(predicted, label, score):
    assert token_f1(predicted, label).score == pytest.approx(score, abs=1e-15)
    assert token_f1(label, predicted).score == pytest.approx(score, abs=1e-15)


def test_matched_tokens_are_named_in_the_labels_order():
    assert token_f1("three one one", "one two one three").matched == "one one three"
    assert token_f1("x", "y").matched == ""


@pytest.mark.parametrize(
    ("predicted", "label", "score"),
    [
        pytest.param("Gmail", "gmail ", 1.0, id="case and edges"),
        pytest.param("Google\u00a0Maps", "google  maps", 1.0, id="any white space"),
        pytest.param("Face\u00adbook\u200b", "Facebook", 1.0, id="soft hyphen and zero-width space"),
        pytest.param("Ｇｍａｉｌ", "Gmail", 1.0, id="full width"),
        pytest.param("Clok", "Clock", 0.8, id="one letter lost"),
        pytest.param("Map", "Maps", 0.75, id="a prefix is not the app"),
        pytest.param("YouTube Music", "YouTube", 1 - 6 / 13, id="another app of the family"),
        pytest.param("", "Clock", 0.0, id="no name"),
        pytest.param("abc", "xyz", 0.0, id="nothing in common"),
    ],
)
def test_similarity(predicted, label, score):
    assert similarity(predicted, label) == pytest.approx(score, abs=1e-15)
    assert similarity(label, predicted) == pytest.approx(score, abs=1e-15)


@given(texts, texts)
def test_token_f1_equals_the_oracle(predicted, label):
    score, matched = token_f1(predicted, label)
    assert (score, matched) == (pytest.approx(f1(predicted, label)[0], abs=1e-15), f1(predicted, label)[1])
    assert 0.0 <= score <= 1.0


@given(names, names)
def test_similarity_equals_the_oracle(predicted, label):
    assert similarity(predicted, label) == pytest.approx(app_similarity(predicted, label), abs=1e-15)


@given(st.text())
def test_normal_forms_are_their_own_normal_form_and_equal_texts_score_one(text):
    assert normalise(normalise(text)) == normalise(text)
    assert token_f1(text, text).score == 1.0
    assert token_f1(text, normalise(text)).score == 1.0
    assert similarity(text, app_key(text)) == 1.0
    assert all(token and not token.isspace() for token in tokens(text))
