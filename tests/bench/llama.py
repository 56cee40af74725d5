"""Hugging Face's Llama with the parameters of a ``TinyTransformer``: for comparisons only."""

import re

from transformers import LlamaConfig, LlamaForCausalLM

from attnlab import TinyTransformer

RENAMED = {
    r"^emb": "model.embed_tokens",
    r"^norm": "model.norm.weight",
    r"^blocks": "model.layers",
    r"attention_norm": "input_layernorm.weight",
    r"mlp_norm": "post_attention_layernorm.weight",
    r"attention\.w_(\w)": r"self_attn.\1_proj",
    r"(gate_up|down)": r"mlp.\1_proj.weight",
}


def their_name(name: str) -> str:
    """The name in Hugging Face's Llama of one of our parameters."""
    for ours, theirs in RENAMED.items():
        name = re.sub(ours, theirs, name)
    return name


def llama_of(model: TinyTransformer, attention: str = "eager") -> LlamaForCausalLM:
    """The same model in transformers; only "eager" attention returns its weights."""
    attend = model.blocks[0].attention
    config = LlamaConfig(
        vocab_size=model.vocab_size,
        hidden_size=attend.width,
        intermediate_size=4 * attend.width,
        num_hidden_layers=len(model.blocks),
        num_attention_heads=attend.n_heads,
        num_key_value_heads=attend.n_kv_heads,
        max_position_embeddings=model.max_length,
        rms_norm_eps=1e-6,
        tie_word_embeddings=False,
        attn_implementation=attention,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )
    llama = LlamaForCausalLM(config).to(model.lm_head.weight.dtype).eval().requires_grad_(False)
    theirs = {their_name(name): p for name, p in model.state_dict().items()}
    for name in [name for name in theirs if "gate_up" in name]:
        gate, up = theirs.pop(name).chunk(2)  # one parameter here, two there
        theirs |= {name.replace("gate_up", "gate"): gate, name.replace("gate_up", "up"): up}
    llama.load_state_dict(theirs)
    return llama
