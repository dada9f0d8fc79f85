"""Tiny random models of every kind of attention that transformers knows, and the maps that their own eager code makes.

Windows are shorter than the documents, key heads fewer than query heads, experts few.
"""

from dataclasses import dataclass, field

import torch
import transformers

LENGTH, WINDOW, VOCABULARY, FIRST_FREE_ID = 24, 6, 96, 32
_SHAPE = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
_MULTI_HEAD = _SHAPE | {"num_key_value_heads": 4}
_IMAGE = {"image_size": 16, "patch_size": 4, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
_SEQ2SEQ = {
    "vocab_size": VOCABULARY,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 64,
    "decoder_start_token_id": 2,
}
_LATENT = {
    "q_lora_rank": 16, "kv_lora_rank": 8, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 12, "n_group": 1,
    "topk_group": 1, "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16,
    "first_k_dense_replace": 1,
}  # fmt: skip
_LINEAR = {
    "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8, "linear_value_head_dim": 8,
}  # fmt: skip
_EXPERTS = {"num_local_experts": 4, "num_experts_per_tok": 2}
_ALTERNATING = {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": WINDOW}


@dataclass(frozen=True)
class Case:
    """A model.

    Args:
        name: class of its configuration, without "Config".
        options: of the configuration.
        task: which automatic class builds it.
        kind: of the body.
        way: how the probe measures it.
        dtype: float32 where experts have no float64 kernel, or the model casts by itself.
        windows: layers in which the last queries do not see the first key.
        silent: layers without attention.
        packs: whether documents can be packed: they cannot if positions do not part them, or if convolutions and
            states read over the border.
        pads: whether the model itself gives the same with padding.
    """

    name: str
    options: dict = field(repr=False)
    task: str = "ForCausalLM"
    kind: str = "decoder"
    way: str = "interface"
    dtype: torch.dtype = torch.float64
    windows: tuple[int, ...] = ()
    silent: tuple[int, ...] = ()
    packs: bool = True
    pads: bool = True


_FLOAT32 = torch.float32
CASES = {
    "gpt2": Case("GPT2", _SHAPE),
    "llama": Case("Llama", _SHAPE),
    "mistral, window": Case("Mistral", _SHAPE | {"sliding_window": WINDOW}, windows=(0, 1)),
    "qwen2": Case("Qwen2", _SHAPE),
    "qwen3, normed keys": Case("Qwen3", _SHAPE | {"head_dim": 8}),
    "gemma2, soft-cap and windows": Case(
        "Gemma2", _SHAPE | _ALTERNATING | {"head_dim": 8, "attn_logit_softcapping": 1.5}, windows=(0,)
    ),
    "gemma3, normed keys and windows": Case("Gemma3Text", _SHAPE | _ALTERNATING | {"head_dim": 8}, windows=(0,)),
    "cohere2, windows": Case("Cohere2", _SHAPE | _ALTERNATING, windows=(0,)),
    "llama4, chunks": Case(
        "Llama4Text",
        _SHAPE
        | _EXPERTS
        | {"head_dim": 8, "attention_chunk_size": 8, "intermediate_size_mlp": 48}
        | {"layer_types": ["chunked_attention", "full_attention"]},
        dtype=_FLOAT32,
        windows=(0,),
    ),
    "opt": Case("OPT", _SHAPE | {"ffn_dim": 48, "word_embed_proj_dim": 32}, packs=False),
    "gpt_neox": Case("GPTNeoX", _MULTI_HEAD),
    "phi": Case("Phi", _SHAPE),
    "olmo2": Case("Olmo2", _SHAPE),
    "falcon": Case("Falcon", _MULTI_HEAD | {"multi_query": True}, way="maps"),
    "bloom, ALiBi": Case("Bloom", _MULTI_HEAD, way="maps", dtype=_FLOAT32, packs=False),
    "mpt, ALiBi": Case(
        "Mpt", {"d_model": 32, "n_heads": 4, "n_layers": 2, "vocab_size": VOCABULARY, "max_seq_len": 64},
        way="maps", packs=False,
    ),
    "gpt_neo, window": Case(
        "GPTNeo",
        {"hidden_size": 32, "num_layers": 2, "num_heads": 4, "vocab_size": VOCABULARY, "window_size": WINDOW}
        | {"attention_types": [[["global", "local"], 1]], "max_position_embeddings": 64},
        way="maps",
        windows=(1,),
    ),
    "gpt_oss, learned sinks and windows": Case(
        "GptOss",
        _SHAPE
        | _EXPERTS
        | _ALTERNATING
        | {"head_dim": 8, "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}},
        dtype=_FLOAT32,
        windows=(0,),
        packs=False,
    ),
    "deepseek_v2, latent": Case("DeepseekV2", _MULTI_HEAD | _LATENT, dtype=_FLOAT32),
    "deepseek_v3, latent": Case("DeepseekV3", _MULTI_HEAD | _LATENT, dtype=_FLOAT32),
    "deepseek_v32, few keys": Case(
        "DeepseekV32",
        _MULTI_HEAD | _LATENT | {"index_topk": 8, "index_head_dim": 16, "index_n_heads": 2},
        dtype=_FLOAT32,
        windows=(0, 1),
        packs=False,
        pads=False,  # many scores are 0, and which of them count depends on the width
    ),
    "minimax_m3, blocks of keys": Case(
        "MiniMaxM3VLText",
        _SHAPE
        | _EXPERTS
        | {"head_dim": 8, "index_block_size": 4, "index_topk_blocks": 2, "index_n_heads": 2, "index_head_dim": 8},
        dtype=_FLOAT32,
    ),
    "inkling2, a sink for each query": Case(
        "Inkling2Text",
        _SHAPE
        | {"num_key_value_heads": 2, "head_dim": 8, "swa_num_attention_heads": 4, "swa_num_key_value_heads": 2}
        | {"swa_head_dim": 8, "sliding_window_size": WINDOW, "d_rel": 4, "rel_extent": 16, "n_routed_experts": 4}
        | {"num_experts_per_tok": 2, "moe_intermediate_size": 16, "unpadded_vocab_size": VOCABULARY}
        | {"layer_types": ["hybrid_sliding", "hybrid"], "n_layers_per_attn_res_block": 1},
        dtype=_FLOAT32,
        windows=(0,),
        packs=False,
    ),
    "qwen3_next, linear layers": Case(
        "Qwen3Next",
        _SHAPE
        | _LINEAR
        | {"head_dim": 8, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
        | {"shared_expert_intermediate_size": 16, "num_hidden_layers": 3}
        | {"layer_types": ["linear_attention", "full_attention", "linear_attention"]},
        dtype=_FLOAT32,
        silent=(0, 2),
        packs=False,
    ),
    "jamba, state-space layers": Case(
        "Jamba",
        _SHAPE
        | {"num_hidden_layers": 3, "attn_layer_period": 2, "attn_layer_offset": 1, "num_experts": 1}
        | {"mamba_d_state": 8, "mamba_dt_rank": 4, "use_mamba_kernels": False},
        dtype=_FLOAT32,
        silent=(0, 2),
        packs=False,
    ),
    "bert": Case("Bert", _SHAPE, task="ForMaskedLM", kind="encoder", packs=False),
    "modernbert, windows": Case(
        "ModernBert",
        _SHAPE | {"local_attention": 8, "layer_types": ["full_attention", "sliding_attention"], "cls_token_id": 1}
        | {"sep_token_id": 2},
        task="ForMaskedLM",
        kind="encoder",
        windows=(1,),
        packs=False,
    ),
    "t5": Case(
        "T5", {"vocab_size": VOCABULARY, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4},
        task="ForConditionalGeneration", kind="encoder-decoder",
    ),
    "bart": Case("Bart", _SEQ2SEQ, task="ForConditionalGeneration", kind="encoder-decoder"),
    "vit": Case("ViT", _IMAGE | {"intermediate_size": 48}, task="Model", kind="vision"),
    "dinov2": Case("Dinov2", _IMAGE, task="Model", kind="vision"),
    "dinov2, registers": Case(
        "Dinov2WithRegisters", _IMAGE | {"num_register_tokens": 3}, task="Model", kind="vision"
    ),
}  # fmt: skip
# Its eager code adds the ALiBi bias twice (transformers 5.24), its default code once.
FALCON_ALIBI = Case("Falcon", _MULTI_HEAD | {"alibi": True, "multi_query": False})
OF_KIND = {kind: [n for n, c in CASES.items() if c.kind == kind] for kind in ("decoder", "encoder", "vision")}


def build(case, attention=None):
    """The model in evaluation mode, with weights large enough that its heads are not uniform."""
    case = CASES[case] if isinstance(case, str) else case
    config = getattr(transformers, f"{case.name}Config")(**case.options)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = class_of(case, config)._from_config(config, attn_implementation=attention)
        with torch.no_grad():
            for part in model.modules():
                for key, weight in part.named_parameters(recurse=False):
                    plain = weight.ndim == 2 and key == "weight"
                    weight.add_(torch.randn_like(weight), alpha=0.2 if plain else 0.1)
    return model.to(case.dtype).eval()


def class_of(case, config):
    """The class that transformers has for this configuration and task."""
    tables = {
        "ForCausalLM": transformers.MODEL_FOR_CAUSAL_LM_MAPPING,
        "ForMaskedLM": transformers.MODEL_FOR_MASKED_LM_MAPPING,
        "ForConditionalGeneration": transformers.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING,
        "Model": transformers.MODEL_MAPPING,
    }
    return tables[case.task][type(config)]


def ids(seed=0, length=LENGTH):
    random = torch.Generator().manual_seed(seed)
    return torch.randint(FIRST_FREE_ID, VOCABULARY, (length,), generator=random).tolist()


def sample(name, seed=0):
    """A document, or an image, (3, 16, 16)."""
    if CASES[name].kind != "vision":
        return ids(seed)
    return torch.randn(3, 16, 16, generator=torch.Generator().manual_seed(seed))


def eager(body, given):
    """Last hidden states, and maps by the name of the attention, as the model itself gives them."""
    with torch.inference_mode():
        out = body.network(**body.inputs(given), output_attentions=True)
    own = {"self": "attentions"}
    if body.kind == "encoder-decoder":
        own = {"encoder": "encoder_attentions", "decoder": "decoder_attentions", "cross": "cross_attentions"}
    return out[0], {name: [A for A in getattr(out, key) if A is not None] for name, key in own.items()}
