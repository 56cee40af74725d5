"""The recorded tables of small trained models: what they say, and that the scripts still say it."""

import json
from itertools import product

import pytest
import torch
from support import COURSE, ROOT, load
from torch.testing import assert_close

from attnlab import TinyTransformer
from attnlab.data import corpus, recorded_ladder, recorded_positions, recordings
from attnlab.model import swiglu

load(ROOT / "tests/record/archive.py")  # the scripts beside it import it by its name
positions = load(ROOT / "tests/record/positions.py")
ladder = load(ROOT / "tests/record/ladder.py")
seeds = load(ROOT / "tests/record/seeds.py")


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


# --- The ladder ---


def gaps(row):
    """How far each seed ends above the floor, in nats."""
    return [loss - row.best for loss in row.results]


def test_the_ladder_is_of_the_settings_of_its_script_and_its_floors_are_the_corpus_own():
    assert table("ladder.json")["settings"] == ladder.SETTINGS
    floors = corpus().floors()
    floor = {
        "position": floors.none,
        "position and this word": floors.one_word,
        "all words so far": floors.full,
    }
    for row, (name, (sees, _)) in zip(recorded_ladder(), ladder.LADDER.items(), strict=True):
        assert (row.name, row.sees) == (name, sees)
        assert row.best == pytest.approx(floor[sees], abs=1e-12)
        assert len(row.results) == len(ladder.SETTINGS["seeds"])


def test_no_rung_is_below_its_floor_and_only_one_head_alone_is_far_above_it():
    rows = {row.name: row for row in recorded_ladder()}
    assert min(min(gaps(row)) for row in rows.values()) > 0
    far = rows.pop("one head")
    assert min(gaps(far)) > 0.2
    assert all(max(gaps(row)) < 0.06 for row in rows.values())
    assert max(gaps(rows["position only"]) + gaps(rows["one word"])) < 0.013
    assert max(gaps(rows["+ MLP"]) + gaps(rows["+ norm"]) + gaps(rows["+ second block"])) < 0.025


def test_one_rung_trained_again_is_as_recorded():
    row = recorded_ladder()[1]
    again = ladder.exact_loss(ladder.trained(row.name, 3))
    assert again == pytest.approx(row.results[3], abs=0.005)


def test_the_last_rung_is_what_notebook_6_trains():
    text = next(COURSE.glob("06*.py")).read_text(encoding="utf-8")
    assert f"width={ladder.WIDTH}, n_heads={ladder.HEADS}, n_layers=2" in text
    assert f"steps={ladder.STEPS}, lr={ladder.SETTINGS['learning rate']}" in text
    assert f"language.sample({ladder.BATCH}, generator)" in text
    assert isinstance(ladder.LADDER["+ second block"][1](), TinyTransformer)


def test_each_rung_sees_what_it_says():
    ids = corpus().sentences[[5, 700]][:, :-1]  # (B, S): two sentences that differ early
    for name, (sees, make) in ladder.LADDER.items():
        torch.manual_seed(0)
        model = make().requires_grad_(False)
        logits = model(ids)
        if sees == "position":
            assert torch.equal(logits[0], logits[1])
        changed = ids.clone()
        changed[:, 3] = ids[:, 3].flip(0)
        assert (ids[0, 3] != ids[1, 3]).item()
        moved = (model(changed) - logits).abs().amax(dim=(0, 2)) > 1e-6  # (S,)
        expected = {"position": [], "position and this word": [3]}.get(sees, [*range(3, 9)])
        assert moved.nonzero()[:, 0].tolist() == expected, name


def test_a_rung_with_one_part_more_is_the_package_s_block_without_its_norms():
    torch.manual_seed(1)
    rung, block = ladder.LADDER["+ MLP"][1](), ladder.blocks(1).blocks[0]
    x = rung.emb(corpus().sentences[:3, :-1])
    mask = positions.causal_mask(x.shape[1])
    block.load_state_dict(
        {f"attention.{name}": p for name, p in rung.attention.state_dict().items()}
        | {"gate_up": rung.gate_up, "down": rung.down}
        | {name: torch.ones(ladder.WIDTH) for name in ("attention_norm", "mlp_norm")}
    )
    x = x + block.attention(x, mask=mask).output
    x = x + swiglu(x, block.gate_up, block.down)
    assert_close(rung(corpus().sentences[:3, :-1]), rung.lm_head(x))


# --- What notebook 6 says of one seed ---


def test_a_head_is_knocked_out_by_its_mean_or_by_zero():
    torch.manual_seed(4)
    model, ids = ladder.blocks(2), corpus().sentences[:, :5]
    attention, p = model.blocks[1].attention, corpus().probabilities.float()

    def merged():
        seen = []
        hook = attention.w_o.register_forward_hook(lambda _, arguments, __: seen.append(arguments))
        with torch.no_grad():
            model(ids)
        hook.remove()
        return seen[0][0].view(-1, 5, 4, 8)  # (n, S, H, d)

    before = merged()
    for by_mean in (True, False):
        with seeds.KnockedOut(model, 1, 2, by_mean):
            after = merged()
        assert torch.equal(after[:, :, [0, 1, 3]], before[:, :, [0, 1, 3]])
        mean = torch.einsum("n,nsd->sd", p, before[:, :, 2])
        assert_close(after[:, :, 2], (mean * by_mean).expand(len(ids), 5, 8))
    assert torch.equal(merged(), before)
