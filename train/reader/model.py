"""The reader: a BERT that reads two texts together, with three heads.

Input is ``[CLS] a [SEP] heading : text [SEP]`` with token type 1 from the heading on. The trunk
starts from a sentence encoder; embeddings and the lowest layers stay frozen, so the reader shares
them with the encoder.
"""

import json
import os

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import nn

FROZEN = 3  # lowest layers that are not trained
SUPPORTED, CONTRADICTED, NEUTRAL = range(3)


class Layer(nn.Module):
    """A transformer layer in the post-norm form of BERT, without dropout."""

    def __init__(self, hidden, wide, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.output = nn.Linear(hidden, hidden)
        self.output_norm = nn.LayerNorm(hidden, eps=1e-12)
        self.up = nn.Linear(hidden, wide)
        self.down = nn.Linear(wide, hidden)
        self.down_norm = nn.LayerNorm(hidden, eps=1e-12)

    def forward(self, x, mask):
        b, t, h = x.shape
        d = h // self.heads
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d).permute(2, 0, 3, 1, 4)
        scores = torch.matmul(q * d**-0.5, k.transpose(-1, -2))
        if mask is not None:
            scores = scores + mask
        attended = torch.matmul(torch.softmax(scores, -1), v)
        x = self.output_norm(x + self.output(attended.transpose(1, 2).reshape(b, t, h)))
        return self.down_norm(x + self.down(F.gelu(self.up(x))))


class Reader(nn.Module):
    """Trunk and heads. forward returns token logits (start, end), relevance and entailment."""

    def __init__(self, config):
        super().__init__()
        h = config["hidden_size"]
        self.config = config
        self.words = nn.Embedding(config["vocab_size"], h)
        self.positions = nn.Embedding(config["max_position_embeddings"], h)
        self.types = nn.Embedding(2, h)
        self.norm = nn.LayerNorm(h, eps=1e-12)
        self.layers = nn.ModuleList(
            Layer(h, config["intermediate_size"], config["num_attention_heads"])
            for _ in range(config["num_hidden_layers"])
        )
        self.span = nn.Linear(h, 2)
        self.relevance = nn.Linear(h, 1)
        self.entailment = nn.Linear(h, 3)
        for head in (self.span, self.relevance, self.entailment):
            nn.init.normal_(head.weight, std=0.02)
            nn.init.zeros_(head.bias)

    def freeze(self, layers=FROZEN):
        frozen = [self.words, self.positions, self.types, self.norm, *self.layers[:layers]]
        for module in frozen:
            module.requires_grad_(False)

    def trunk(self, ids, types, lengths, dtype=torch.float32, frozen=FROZEN):
        t = ids.shape[1]
        padded = torch.arange(t)[None, :] >= lengths[:, None]
        mask = None
        if bool(padded.any()):
            mask = torch.zeros(padded.shape, dtype=dtype).masked_fill_(padded, -1e4)[:, None, None, :]
        with torch.no_grad():
            x = self.words(ids) + self.positions.weight[:t] + self.types(types)
            x = self.norm(x).to(dtype)
            for layer in self.layers[:frozen]:
                x = layer(x, mask)
        for layer in self.layers[frozen:]:
            x = layer(x, mask)
        return x

    def heads(self, x):
        cls = x[:, 0].float()
        return self.span(x.float()), self.relevance(cls)[:, 0], self.entailment(cls)

    def forward(self, ids, types, lengths, dtype=torch.float32, frozen=FROZEN):
        return self.heads(self.trunk(ids, types, lengths, dtype, frozen))


def answerable(span, text):
    """The logit of "the text answers the question".

    span [B, T, 2] are start and end logits, text [B, T] marks the tokens of the text; position 0
    is [CLS], which stands for "no answer".
    """
    masked = span.masked_fill(~text[:, :, None], -1e4)
    return (torch.logsumexp(masked, 1) - span[:, 0]).mean(-1)


HF = {
    "output": "attention.output.dense",
    "output_norm": "attention.output.LayerNorm",
    "up": "intermediate.dense",
    "down": "output.dense",
    "down_norm": "output.LayerNorm",
}


def from_encoder(folder, layers):
    """A Reader with the lowest layers of the encoder, as assay computes with them, and fresh heads.

    folder holds config.json and model.safetensors, quantised by assay or not.
    """
    with open(os.path.join(folder, "config.json")) as f:
        config = json.load(f)
    config["num_hidden_layers"] = layers
    model = Reader(config)
    load_trunk(model, dequantised(load_file(os.path.join(folder, "model.safetensors"))))
    return model


def dequantised(stored):
    """Tensors as float32; docs/formats.md has the layout of quantised ones."""
    tensors = {}
    for name, t in stored.items():
        scale = stored.get(name + ".scale")
        if scale is None:
            tensors[name] = t.float()
        elif t.dtype == torch.int8:
            tensors[name] = t.float() * scale[:, None]
        else:
            tensors[name] = unpack(t.numpy(), scale.numpy())
    return tensors


def unpack(packed, scales, columns=384):
    """A token table: each row is a stream of numbers of a few bits, lowest bit first."""
    bits = packed.shape[1] * 8 // columns
    stream = np.unpackbits(packed, axis=1, bitorder="little")[:, : columns * bits].reshape(len(packed), columns, bits)
    levels = stream @ (1 << np.arange(bits)) - (1 << (bits - 1))
    return torch.from_numpy((levels * np.repeat(scales, columns // scales.shape[1], 1)).astype(np.float32))


def load_trunk(model, tensors):
    """Copy the tensors with Hugging Face's names into the trunk: embeddings and the lowest layers."""
    own = {"words": "word_embeddings", "positions": "position_embeddings", "types": "token_type_embeddings"}
    with torch.no_grad():
        for name, theirs in own.items():
            getattr(model, name).weight.copy_(tensors[f"embeddings.{theirs}.weight"])
        for kind in ("weight", "bias"):
            getattr(model.norm, kind).copy_(tensors[f"embeddings.LayerNorm.{kind}"])
    load_layers(model, tensors, 0)


@torch.no_grad()
def load_layers(model, tensors, first):
    """Copy the tensors with Hugging Face's names into the layers from first on."""
    for i, layer in enumerate(model.layers):
        if i < first:
            continue
        prefix = f"encoder.layer.{i}."
        for kind in ("weight", "bias"):
            parts = [tensors[f"{prefix}attention.self.{n}.{kind}"] for n in ("query", "key", "value")]
            getattr(layer.qkv, kind).copy_(torch.cat(parts))
            for name, theirs in HF.items():
                getattr(getattr(layer, name), kind).copy_(tensors[f"{prefix}{theirs}.{kind}"])


@torch.no_grad()
def load_trained(model, folder):
    """Copy the trained layers and heads that export wrote."""
    tensors = dequantised(load_file(os.path.join(folder, "model.safetensors")))
    load_layers(model, tensors, FROZEN)
    for name in ("span", "relevance", "entailment"):
        for kind in ("weight", "bias"):
            getattr(getattr(model, name), kind).copy_(tensors[f"{name}.{kind}"])


def trunk_tensors(model, first=0):
    """The trunk's tensors with Hugging Face's names, of the layers from first on."""
    tensors = {}
    h = model.config["hidden_size"]
    for i, layer in enumerate(model.layers):
        if i < first:
            continue
        prefix = f"encoder.layer.{i}."
        for kind in ("weight", "bias"):
            for n, part in zip(("query", "key", "value"), getattr(layer.qkv, kind).detach().split(h)):
                tensors[f"{prefix}attention.self.{n}.{kind}"] = part.clone()
            for name, theirs in HF.items():
                tensors[f"{prefix}{theirs}.{kind}"] = getattr(getattr(layer, name), kind).detach().clone()
    return tensors
