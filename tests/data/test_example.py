"""The worked example: its numbers by hand, and phrases to ids and back."""

import ast

import pytest
import torch
from support import ROOT

from attnlab.data import TOY_WORDS, corpus, decode, embed, embedding_table, encode, toy_task


def test_bank_has_the_same_row_in_both_phrases():
    table = embedding_table()
    assert table[encode("river bank")].tolist() == [[2, 0], [1, 0]]
    assert table[encode("money bank")].tolist() == [[0, 2], [1, 0]]
    assert table.dtype == torch.float32 and encode("bank").dtype == torch.int64


def test_changing_the_table_in_place_does_not_change_the_next_one():
    embedding_table().zero_()
    assert embedding_table().tolist() == [[2, 0], [0, 2], [1, 0]]


def test_decode_is_the_inverse_of_encode():
    assert decode(encode("river  money\nbank")) == "river money bank"


def test_other_words_have_embeddings_of_their_own_that_never_change():
    tokens, x = embed("river cat bank cat naïve")
    assert tokens == ["river", "cat", "bank", "cat", "naïve"]
    assert x.shape == (5, 2) and x.abs().max() <= 2
    assert x[[0, 2]].tolist() == [[2, 0], [1, 0]]
    assert torch.equal(x[1], x[3]) and not torch.equal(x[1], x[4])
    assert torch.equal(embed("cat")[1][0], x[1])


def test_the_toy_task_distinguishes_shore_from_loan():
    inputs, targets = toy_task()
    assert [decode(ids, TOY_WORDS) for ids in inputs] == ["river bank", "money bank"]
    assert decode(targets, TOY_WORDS) == "shore loan"
    assert inputs.shape == (2, 2) and targets.shape == (2,)


def test_unsuitable_phrases_are_refused():
    for call, message in (
        (lambda: encode("  "), "text is empty, but at least one word is needed."),
        (lambda: encode("river bench"), "'bench' is not a known word; known are river, money, ba"),
        (lambda: encode("bat", corpus().words[:11]), "'bat' is not a known word; known are 11 oth"),
        (lambda: embed(" "), "text has 0 words, but 1 to 8 are needed."),
        (lambda: embed("bank " * 9), "text has 9 words, but 1 to 8 are needed."),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=f"^{message}"):
            call()


def test_the_package_writes_its_numbers_down_once():
    table = embedding_table().tolist()
    places = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sorted((ROOT / "src").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.List) and ast.unparse(node) == str(table)
    ]
    assert len(places) == 1, places
