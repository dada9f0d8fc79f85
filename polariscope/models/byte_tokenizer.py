"""A tokenizer for any text that needs no file: one token a byte."""

from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

BOS, EOS, PAD = "<bos>", "<eos>", "<pad>"
BOS_ID, EOS_ID, PAD_ID, VOCABULARY = range(256, 260)


def byte_tokenizer(max_length: int) -> PreTrainedTokenizerFast:
    """One token for each byte of the text's UTF-8 form, in vocabulary order 0 to 255, then BOS, EOS and PAD.

    Encoding adds no special token; ``decode(encode(text)) == text`` for every text that holds no special token.

    Args:
        max_length: the longest input the model takes, in tokens.
    """
    letters = _letter_of_byte()
    tokenizer = Tokenizer(models.BPE(vocab={letter: byte for byte, letter in enumerate(letters)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=BOS,
        eos_token=EOS,
        pad_token=PAD,
        model_max_length=max_length,
        clean_up_tokenization_spaces=False,
    )


def _letter_of_byte() -> list[str]:
    """The printable letter that byte-level tokenizers write for each byte.

    Printable Latin-1 bytes stand for themselves; the others take the code points from 256 on, in order (the alphabet
    of GPT-2, Radford et al. 2019).
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    spare = iter(range(0x100, 0x200))
    return [chr(byte if byte in printable else next(spare)) for byte in range(256)]
