"""The recorded tables of small trained models: what they say, and that the scripts still say it."""

import json
from itertools import product

import pytest
from support import ROOT, load

from attnlab.data import recorded_positions, recordings

load(ROOT / "tests/record/archive.py")  # the scripts beside it import it by its name
positions = load(ROOT / "tests/record/positions.py")


def table(name):
    return json.loads((recordings.FOLDER / name).read_text(encoding="utf-8"))


def test_the_positions_table_is_of_the_settings_of_its_script():
    assert table("positions.json")["settings"] == positions.SETTINGS
    seen = [(row.name, row.sees) for row in recorded_positions()]
    assert [pair[::-1] for pair in seen] == [
        *product(("all tokens", "tokens so far"), positions.POSITIONS)
    ]
    assert all(len(row.results) == len(positions.SETTINGS["seeds"]) for row in recorded_positions())


def test_without_positions_an_encoder_counts_tokens_and_a_causal_model_finds_the_order():
    found = {(row.name, row.sees): row for row in recorded_positions()}
    blind = found.pop(("none", "all tokens"))
    assert blind.best == positions.best_without_order()
    assert all(abs(result - blind.best) < 0.01 for result in blind.results)
    counted = found.pop(("none", "tokens so far"))
    assert 0.99 < min(counted.results) and max(counted.results) < 0.999
    assert len(found) == 6
    assert all(row.best == 1 and min(row.results) > 0.999 for row in found.values())


@pytest.mark.parametrize("others, symbols", [(1, 5), (2, 3), (5, 3), (7, 2)])
def test_the_best_guess_without_order_is_the_most_frequent_other_token(others, symbols):
    largest = [max(map(x.count, x)) for x in product(range(symbols), repeat=others)]
    expected = sum(largest) / len(largest) / others
    assert positions.best_without_order(others, symbols) == pytest.approx(expected, abs=1e-12)


def test_the_targets_are_the_previous_tokens():
    ids, targets = positions.draw(3, None)
    assert (targets[:, 1:] == ids[:, :-1]).all() and (targets[:, 0] == positions.IGNORE).all()


def test_one_reader_trained_again_is_as_recorded():
    recorded = {(row.name, row.sees): row.results for row in recorded_positions()}
    again = positions.accuracy("none", False, 0)
    assert again == pytest.approx(recorded["none", "all tokens"][0], abs=0.01)


def test_a_comparison_sees_another_result_and_another_setting(capsys):
    recorded = table("positions.json")
    arguments = recorded["settings"], recorded["rows"], 0.01
    assert positions.archive.compare(recorded, *arguments) == 0
    other = json.loads(json.dumps(recorded))
    other["rows"][3]["results"][2] -= 0.02
    assert positions.archive.compare(other, *arguments) == 1
    other = recorded | {"settings": recorded["settings"] | {"steps": 3}}
    assert positions.archive.compare(other, *arguments) == 1
    assert "largest difference 0.02 (at most 0.01), all else equal: True" in capsys.readouterr().out
