# Trains small tokenizers of the kinds that models have, with the reference implementation, and encodes texts with them.
# In: a folder, and JSON texts on stdin. Out: FOLDER/KIND/tokenizer.json, and one JSON object on stdout: kind -> [{text, ids, decoded}].
import json
import sys
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

folder = Path(sys.argv[1])
request = json.load(sys.stdin)
special = ["<unk>", "<bos>", "<eos>", "<turn>", "<end>"]
fallback = [f"<0x{byte:02X}>" for byte in range(256)]
llama3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def bpe(vocab_size, initial=(), **options):
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=special + list(initial), show_progress=False, **options
    )
    return trainer


def gemma():
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.train_from_iterator(request["corpus"], bpe(600, fallback))
    return tokenizer


def llama2():
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.train_from_iterator(request["corpus"], bpe(600, fallback))
    return tokenizer


def metaspace():
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="first", split=False)
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.train_from_iterator(request["corpus"], bpe(600, fallback))
    return tokenizer


def unigram():
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    trainer = trainers.UnigramTrainer(
        vocab_size=300, special_tokens=special, unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(request["corpus"], trainer)
    return tokenizer


def tiktoken():
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(llama3), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(request["corpus"], bpe(600, initial_alphabet=alphabet))
    return tokenizer


answer = {}
for make in (gemma, llama2, metaspace, unigram, tiktoken):
    tokenizer = make()
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in special])
    target = folder / make.__name__
    target.mkdir(parents=True)
    tokenizer.save(str(target / "tokenizer.json"))
    # Byte tokens are part of the vocabulary, not special: the trainer lists what it was given.
    data = json.loads((target / "tokenizer.json").read_text())
    data["added_tokens"] = [token for token in data["added_tokens"] if token["content"] in special]
    (target / "tokenizer.json").write_text(json.dumps(data))
    tokenizer = Tokenizer.from_file(str(target / "tokenizer.json"))
    rows = []
    for text in request["texts"]:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        rows.append({"text": text, "ids": ids, "decoded": tokenizer.decode(ids, skip_special_tokens=False)})
    answer[make.__name__] = rows
print(json.dumps(answer))
