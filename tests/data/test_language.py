"""The generated language: entropies by hand and by sums, its sentences, its samples."""

import math

import pytest
import torch

from attnlab.data import TOY_WORDS, Corpus, corpus, encode


def entropy(*probabilities):
    return -sum(p * math.log(p) for p in probabilities)


def small_corpus(*sentences):
    """A corpus over the toy words from pairs of a text and its probability."""
    return Corpus(
        TOY_WORDS,
        torch.stack([encode(text, TOY_WORDS) for text, _ in sentences]),
        torch.tensor([p for _, p in sentences], dtype=torch.float64),
    )


def following(person, word):
    """The words that follow an ambiguous word in this person's sentences: {word: probability}."""
    c = corpus()
    pair = encode(f"{person} {word}", c.words)
    match = (c.sentences[:, [1, c.position]] == pair).all(1)  # (n,)
    total = torch.zeros(len(c.words), dtype=torch.float64)
    total.index_add_(0, c.sentences[match, c.position + 1], c.probabilities[match])
    total /= total.sum()
    return {c.words[i]: round(total[i].item(), 9) for i in total.nonzero()[:, 0]}


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


def test_the_floor_is_the_exact_loss_averaged_over_the_corpus():
    c = corpus()
    mean = c.probabilities @ c.exact_loss(c.sentences)  # (S-1,)
    torch.testing.assert_close(mean, c.floors_by_position().full)
    assert mean.mean().item() == pytest.approx(c.floors().full)


def test_seeing_more_words_lowers_the_floor_after_the_ambiguous_word_and_at_the_end():
    c = corpus()
    full, one_word, none = c.floors_by_position()
    assert (none >= one_word - 1e-12).all() and (one_word >= full - 1e-12).all()
    gain = (one_word - full).tolist()  # entry t is about word t + 1
    assert gain[: c.position - 1] == pytest.approx([0] * (c.position - 1), abs=1e-12)
    assert gain[c.position] > 0.5 and gain[-1] > 2.5


def test_the_corpus_holds_every_sentence_once():
    c = corpus()
    assert c.sentences.shape == (11 * 2 * 3 * 2 * 4 * 4, 10)
    assert c.sentences.dtype == torch.int64 and c.probabilities.dtype == torch.float64
    assert c.sentences.unique().tolist() == list(range(len(c.words)))
    assert corpus() is c


def test_every_word_occurs_at_one_position_only():
    c = corpus()
    for i in range(len(c.words)):
        assert (c.sentences == i).any(0).sum() == 1


def test_the_person_decides_the_sense_and_the_sense_what_follows():
    c = corpus()
    assert following("hiker", "bank") == {"crumble": 0.7, "flood": 0.3}
    assert following("banker", "bank") == {"fail": 0.7, "lend": 0.3}
    ambiguous = {c.words[i] for i in c.sentences[:, c.position].unique()}
    assert ambiguous == {"bank", "mole", "bat", "spring", "crane"}
    for word in ambiguous:
        heard = c.sentences[c.sentences[:, c.position] == encode(word, c.words), 1].unique()
        senses = {frozenset(following(c.words[person], word)) for person in heard}
        assert len(senses) == (3 if word == "mole" else 2)
        assert len(frozenset.union(*senses)) == 2 * len(senses)  # no verb is shared


def test_a_sample_has_the_frequencies_of_the_corpus():
    c = corpus()
    count = 20_000
    before = torch.get_rng_state()
    ids = c.sample(count, torch.Generator().manual_seed(7))
    assert torch.equal(c.sample(count, torch.Generator().manual_seed(7)), ids)
    assert torch.equal(torch.get_rng_state(), before)
    assert ids.shape == (count, 10)
    persons = torch.bincount(ids[:, 1], minlength=12)[1:] / count
    spread = math.sqrt(1 / 11 * 10 / 11 / count)
    assert (persons - 1 / 11).abs().max() < 4 * spread
    # the mean loss of a sample is near the floor, and not equal to it
    assert c.exact_loss(ids).mean().item() == pytest.approx(c.floors().full, abs=0.005)


def test_the_beginning_of_a_sentence_is_accepted():
    c = corpus()
    ids = c.sample(3, torch.Generator().manual_seed(0))
    torch.testing.assert_close(c.exact_loss(ids[:, :7]), c.exact_loss(ids)[:, :6])


def test_sentences_outside_the_corpus_are_refused():
    c = corpus()
    wrong = encode("a fisherman saw that small bank fail", c.words)[None]
    with pytest.raises(ValueError, match=r"^row 1 of ids, \[0, 1, .*\], cannot occur in the corp"):
        c.exact_loss(torch.cat([c.sentences[:1, :7], wrong]))
    with pytest.raises(ValueError, match=r"^ids has shape \(1, 11\), but sentences are \(count, T"):
        c.exact_loss(torch.zeros(1, 11, dtype=torch.int64))
    with pytest.raises(ValueError, match="^count must be at least 1, but is 0.$"):
        c.sample(0)


@pytest.mark.parametrize(
    "p, message",
    [
        ((0.5, 0.6), "smallest is 0.5 and the sum 1.1"),
        ((1.5, -0.5), "smallest is -0.5 and the sum 1."),
        ((math.nan, 1.0), "smallest is nan and the sum nan"),
        ((1 / 3,) * 3, r"^probabilities has shape \(3,\) for 2 sentences.$"),
    ],
)
def test_a_corpus_refuses_numbers_that_are_not_its_probabilities(p, message):
    with pytest.raises(ValueError, match=message):
        Corpus(TOY_WORDS, torch.tensor([[0, 1], [0, 2]]), torch.tensor(p))


def test_a_corpus_refuses_equal_sentences():
    with pytest.raises(ValueError, match="^sentences must be distinct, but 1 of 2 are.$"):
        Corpus(TOY_WORDS, torch.tensor([[0, 1], [0, 1]]), torch.tensor([0.5, 0.5]))
