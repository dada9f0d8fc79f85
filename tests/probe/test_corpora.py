"""Corpora: every form gives back what was put in, and says where it is damaged."""

import gzip
import itertools
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from polariscope.errors import InputError
from polariscope.models.byte_tokenizer import BOS_ID, byte_tokenizer
from polariscope.probe import _corpora_hub, corpora

TEXTS = ["A first text.\nTwo lines.", "Zweiter: äöü 漢字 🙂", "", "third\ttext " * 500]
PARTS = ["Github", "ArXiv", "Github", "ArXiv"]
LINES = "".join(json.dumps({"text": t, "meta": {"pile_set_name": p}}) + "\n" for t, p in zip(TEXTS, PARTS, strict=True))


def _write_plain(path):
    path.write_text(LINES, encoding="utf-8")


def _write_gzip(path):
    path.write_bytes(gzip.compress(LINES.encode()))


def _write_zstd(path):
    half = len(LINES.encode()) // 2
    frames = (LINES.encode()[:half], LINES.encode()[half:])
    path.write_bytes(b"".join(zstandard.compress(frame) for frame in frames))


def _write_parquet(path):
    pq.write_table(pa.table({"text": TEXTS, "meta": [{"pile_set_name": part} for part in PARTS]}), path)


FORMS = {".jsonl": _write_plain, ".jsonl.gz": _write_gzip, ".jsonl.zst": _write_zstd, ".parquet": _write_parquet}


@pytest.fixture(params=FORMS)
def corpus(request, tmp_path):
    path = tmp_path / f"corpus{request.param}"
    FORMS[request.param](path)
    return path


def test_every_form_gives_the_same_documents(corpus):
    documents = list(corpora.read(str(corpus)))
    assert [d.text for d in documents] == TEXTS
    assert [d.meta["pile_set_name"] for d in documents] == PARTS
    assert len({d.id for d in documents}) == len(TEXTS)
    assert all(d.id.startswith(f"{corpus.name}:") for d in documents)


def test_subset_keeps_one_part_of_the_pile(corpus):
    assert [d.text for d in corpora.read(str(corpus), subset="Github")] == TEXTS[::2]
    with pytest.raises(InputError, match="Github, ArXiv"):
        list(corpora.read(str(corpus), subset="Books"))


def test_reading_is_lazy(tmp_path):
    path = tmp_path / "c.jsonl"
    path.write_text(LINES + "not json\n")
    assert [d.text for d in itertools.islice(corpora.read(str(path)), 4)] == TEXTS


@settings(max_examples=25, deadline=None)
@given(texts=st.lists(st.text(st.characters(codec="utf-8"), min_size=1).filter(str.strip), min_size=1, max_size=5))
def test_any_text_survives_jsonl_zst(tmp_path_factory, texts):
    path = tmp_path_factory.mktemp("any") / "c.jsonl.zst"
    path.write_bytes(zstandard.compress("\n".join(json.dumps({"text": t}) for t in texts).encode()))
    assert [d.text for d in corpora.read(str(path))] == texts


def test_a_text_file_is_one_document(tmp_path):
    (tmp_path / "a.txt").write_text("\ufeffwith a mark\n", encoding="utf-8")
    (document,) = corpora.read(str(tmp_path / "a.txt"))
    assert (document.id, document.text) == ("a.txt", "with a mark\n")


def test_a_folder_is_read_in_order_of_paths(tmp_path):
    for name in ("b.txt", "a.txt", "sub/c.txt", ".hidden/d.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "notes.md").write_text("no corpus")
    _write_gzip(tmp_path / "aa.jsonl.gz")
    ids = [d.id for d in corpora.read(str(tmp_path))]
    assert ids == ["a.txt", "aa.jsonl.gz:1", "aa.jsonl.gz:2", "aa.jsonl.gz:3", "aa.jsonl.gz:4", "b.txt", "sub/c.txt"]


@pytest.mark.parametrize("suffix", [".jsonl.gz", ".jsonl.zst"])
def test_a_file_that_breaks_off_gives_what_came_before_and_says_how_much(suffix, tmp_path):
    words = np.random.default_rng(0).integers(0, 1 << 30, size=(40, 2000)).tolist()
    lines = "".join(json.dumps({"text": " ".join(map(str, row))}) + "\n" for row in words).encode()
    whole = gzip.compress(lines) if suffix == ".jsonl.gz" else zstandard.compress(lines)
    path = tmp_path / f"c{suffix}"
    path.write_bytes(whole[: len(whole) * 3 // 4])
    whole_texts = [" ".join(map(str, row)) for row in words]
    source = corpora.read(str(path))
    got = [d.text for d in source]
    assert 0 < len(got) < 40
    assert got == whole_texts[: len(got)]
    (said,) = source.broken
    assert f"breaks off after {len(got)} documents" in said
    (tmp_path / "a.jsonl").write_bytes(lines)
    (tmp_path / "d.jsonl").write_bytes(lines)
    folder = corpora.read(str(tmp_path))
    assert [d.text for d in folder] == [*whole_texts, *got, *whole_texts]
    assert folder.broken == source.broken
    again = corpora.read(str(path))
    assert [d.text for d in itertools.islice(again, len(got))] == got
    assert again.broken == []


BAD = {
    "not-json.jsonl": (b'{"text": "a"}\n{"text": \n', "line 2"),
    "no-text.jsonl": (b'{"text": "a"}\n{"content": "b"}\n', "line 2, without a string in 'text' .it has: content"),
    "not-object.jsonl": (b"[1]\n", "line 1"),
    "number.jsonl": (b'{"text": 3}\n', "line 1"),
    "nested.jsonl": (b"[" * 100_000, "line 1"),
    "surrogate.jsonl": (b'{"text": "\\ud800"}\n', "surrogate"),
    "latin.jsonl": ('{"text": "é"}'.encode("latin-1"), "0xe9"),
    "latin.txt": ("é".encode("latin-1"), "UTF-8"),
    "binary.txt": (b"ab\0cd", "NUL"),
    "empty.txt": (b"", "without any text"),
    "blank.txt": (b" \n\n", "without any text"),
    "empty.jsonl": (b"", "without any text"),
    "empty.jsonl.gz": (b"", "without any text"),
    "empty.jsonl.zst": (b"", "without any text"),
    "plain.jsonl.gz": (LINES.encode(), "breaks off after 0 documents"),
    "plain.jsonl.zst": (LINES.encode(), "breaks off after 0 documents"),
    "empty.parquet": (b"", "Parquet"),
    "plain.parquet": (LINES.encode(), "Parquet"),
    "x.docx": (b"", "ends in .txt"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_refused_with_the_place(name, tmp_path):
    content, message = BAD[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        list(corpora.read(str(tmp_path / name)))


def test_parquet_faults(tmp_path):
    path = tmp_path / "c.parquet"
    pq.write_table(pa.table({"content": ["a"]}), path)
    with pytest.raises(InputError, match="content"):
        list(corpora.read(str(path)))
    pq.write_table(pa.table({"text": ["a", None]}), path)
    with pytest.raises(InputError, match="row 1"):
        list(corpora.read(str(path)))
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(InputError, match="whole Parquet file"):
        list(corpora.read(str(path)))


@pytest.mark.parametrize(
    ("name", "message"),
    [("pydocs", "'pydoc'"), ("random-token", "random-tokens"), ("", "data source"), ("a/b.txt", "does not exist")],
)
def test_missing_sources_are_refused_at_once(name, message):
    with pytest.raises(InputError, match=message):
        corpora.read(name)


def test_a_folder_without_documents_is_refused(tmp_path):
    with pytest.raises(InputError, match="without such files"):
        list(corpora.read(str(tmp_path)))


def test_pydoc_is_in_the_order_of_its_topics():
    from pydoc_data.topics import topics

    assert [(d.id, d.text) for d in corpora.read("pydoc")] == list(topics.items())


@pytest.mark.parametrize("name", ["random-tokens", "repeated-token"])
def test_drawn_tokens_are_ordinary_reproducible_and_differ_between_documents(name):
    tokenizer = byte_tokenizer(512)
    first, second = ([d.ids_for(tokenizer, 64) for d in corpora.read(name, seed=3, count=5)] for _ in range(2))
    other = [d.ids_for(tokenizer, 64) for d in corpora.read(name, seed=4, count=5)]
    assert first == second
    assert first != other
    assert len({tuple(ids) for ids in first}) > 1
    assert all(len(ids) == 64 and max(ids) < BOS_ID for ids in first)
    assert all((len(set(ids)) == 1) == (name == "repeated-token") for ids in first)


def test_random_tokens_are_uniform():
    from scipy import stats

    (document,) = corpora.read("random-tokens", count=1)
    counts = np.bincount(document.ids_for(byte_tokenizer(512), 100_000), minlength=256)
    assert counts.size == 256
    assert stats.chisquare(counts).pvalue > 1e-3


def test_arguments_of_drawn_tokens_are_checked():
    (document,) = corpora.read("random-tokens", count=1)
    with pytest.raises(InputError, match="length"):
        document.ids_for(byte_tokenizer(512), 0)
    with pytest.raises(InputError, match="seed"):
        list(corpora.read("random-tokens", seed=-1))
    with pytest.raises(InputError, match="count"):
        list(corpora.read("repeated-token", count=0))


def test_the_hub_is_streamed_and_its_failures_are_put_into_words(monkeypatch):
    import datasets

    asked = []

    def load(*arguments, **options):
        asked.append((arguments, options))
        yield from [{"text": t} for t in TEXTS]

    monkeypatch.setattr(datasets, "load_dataset", load)
    assert [d.text for d in corpora.read("hub:owner/set:small:test")] == TEXTS
    assert asked == [(("owner/set", "small"), {"split": "test", "streaming": True})]
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: (_ for _ in ()).throw(ConnectionError("offline")))
    with pytest.raises(InputError, match="ConnectionError: offline"):
        list(corpora.read("hub:owner/set"))

    def breaks(*arguments, **options):
        yield from load()
        raise ConnectionError("offline")

    monkeypatch.setattr(datasets, "load_dataset", breaks)
    source = corpora.read("hub:owner/set")
    assert [d.text for d in source] == TEXTS
    assert "ConnectionError: offline" in source.broken[0]
    with pytest.raises(InputError, match="hub:NAME"):
        list(_corpora_hub.read_hub("a:b:c:d"))


def test_every_entry_of_the_registry_can_be_loaded():
    assert all(callable(corpora.REGISTRY.get(name)) for name in corpora.REGISTRY)
