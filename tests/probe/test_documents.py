"""Token ids: what is at position 1, what is cut, what is short."""

import pytest
from tiny_models import text, tokenizer
from tokenizers.processors import TemplateProcessing

from polariscope.errors import InputError
from polariscope.probe import corpora
from polariscope.probe.documents import Vocabulary, prefix, tokens_of

BYTES = tokenizer()
BOS, EOS = BYTES.bos_token_id, BYTES.eos_token_id


def wrapping(template):
    """The byte tokenizer, adding special tokens by itself."""
    made = tokenizer()
    special = [("<bos>", BOS), ("<eos>", EOS)]
    made.backend_tokenizer.post_processor = TemplateProcessing(single=template, special_tokens=special)
    return made


def ids(texts, made, length=8, bos="auto"):
    return [tokens.ids for tokens in tokens_of(texts, made, length, bos)]


@pytest.mark.parametrize(
    ("template", "auto"),
    [("$A", []), ("<bos> $A", [BOS]), ("<bos> $A <eos>", [BOS]), ("$A <eos>", []), ("<eos> <bos> $A", [EOS, BOS])],
)
def test_prefix_is_what_the_tokenizer_puts_before(template, auto):
    made = wrapping(template)
    assert prefix(made, "auto") == auto
    assert prefix(made, "on") == [BOS]
    assert prefix(made, "off") == []
    plain = list(b"hello")
    assert ids(["hello"], made) == [auto + plain]
    assert ids(["hello"], made, bos="on") == [[BOS, *plain]]
    assert ids(["hello"], made, bos="off") == [plain]


def test_on_needs_a_bos_token():
    made = tokenizer()
    made.bos_token = None
    with pytest.raises(InputError, match="--bos off"):
        list(tokens_of(["hello"], made, 4, "on"))
    assert prefix(made, "auto") == []


@pytest.mark.parametrize("bos", ["auto", "on"])
def test_bos_is_never_doubled(bos):
    assert ids(["<bos>hello"], wrapping("<bos> $A"), bos=bos) == [[BOS, *b"hello"]]
    assert ids(["<bos>hello"], wrapping("<bos> $A"), bos="off") == [[BOS, *b"hello"]]


def test_texts_are_cut_and_never_padded():
    found = list(tokens_of([text(20), text(3), "", text(8)], BYTES, 8, "on"))
    assert [len(tokens.ids) for tokens in found] == [8, 4, 1, 8]
    assert [tokens.count for tokens in found] == [21, 4, 1, 9]
    assert [tokens.id for tokens in found] == ["0", "1", "2", "3"]
    assert found[0].ids == [BOS, *text(20).encode()[:7]]


def test_documents_keep_their_id_and_drawn_ones_their_length():
    assert [t.id for t in tokens_of([corpora.Document("a", "x")], BYTES, 4, "off")] == ["a"]
    for bos, first in (("on", BOS), ("off", None)):
        for tokens in tokens_of(corpora.read("random-tokens", count=3), BYTES, 12, bos):
            assert len(tokens.ids) == tokens.count == 12
            assert (tokens.ids[0] == first) == (first is not None)
            assert BOS not in tokens.ids[1:]


def test_strings_are_the_text_of_each_token():
    words = Vocabulary(BYTES)
    assert words(list(b"a\n<a")) == ["a", "\n", "<", "a"]
    assert words.column([97, -1, 98, 97]).tolist() == ["a", "", "b", "a"]
    assert Vocabulary(["class", "patch"])([1, 0]) == ["patch", "class"]
