"""Writes a trained reader as assay reads it: reader.json, model.safetensors and parity cases.

    python3 -m reader.export --checkpoint OUT/checkpoint.pt --groups OUT --encoder GTE --to FOLDER
    python3 -m reader.export --tiny FOLDER

Layers that were trained are int8 with a scale for each row; embeddings and frozen layers are the
encoder's and are left out. parity.json holds inputs with the logits of this implementation, for the
test that compares assay's with it.
"""

import argparse
import json
import os

import numpy as np
import torch
from safetensors.torch import save_file

from . import data
from .model import FROZEN, Reader, answerable, trunk_tensors
from .train import LAYERS, prepare, tensors


def quantise(name, t):
    """An int8 tensor and the scale of each row; 127 is the row's largest value."""
    scale = t.abs().amax(1).clamp(min=1e-12) / 127
    return {name: torch.round(t / scale[:, None]).clamp(-127, 127).to(torch.int8), name + ".scale": scale}


def heads(model):
    named = {"span": model.span, "relevance": model.relevance, "entailment": model.entailment}
    return {f"{n}.{k}": getattr(m, k).detach().clone() for n, m in named.items() for k in ("weight", "bias")}


def quantised(model):
    out = heads(model)
    for name, t in trunk_tensors(model, FROZEN).items():
        out.update(quantise(name, t) if t.dim() == 2 else {name: t})
    return out


def dequantise_(model):
    """Replace the trained matrices by their quantised values, so that figures are those of int8."""
    with torch.no_grad():
        for layer in model.layers[FROZEN:]:
            for m in (layer.qkv, layer.output, layer.up, layer.down):
                q = quantise("w", m.weight)
                m.weight.copy_(q["w"].float() * q["w.scale"][:, None])


@torch.no_grad()
def logits(model, groups):
    """Logits and labels of all examples of the groups, for calibration."""
    can, rel, ent, labels = [], [], [], []
    for i in range(0, len(groups), 8):
        b = tensors(groups[i : i + 8])
        span, relevance, entail = model(b["ids"], b["types"], b["lengths"])
        can += answerable(span, b["text"]).tolist()
        rel += relevance.tolist()
        ent += entail.tolist()
        labels += list(zip(b["answerable"].tolist(), b["relevance"].tolist(), b["entailment"].tolist()))
    return np.array(can), np.array(rel), np.array(ent), np.array(labels)


def platt(score, label):
    """Scale and bias that make sigmoid(scale*score+bias) a probability where both labels are as frequent."""
    s, y = torch.tensor(score), torch.tensor(label, dtype=torch.double)
    weight = torch.where(y > 0, 0.5 / y.mean(), 0.5 / (1 - y.mean()))
    p = torch.tensor([1.0, 0.0], dtype=torch.double, requires_grad=True)
    opt = torch.optim.LBFGS([p], max_iter=100)

    def closure():
        opt.zero_grad()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(p[0] * s + p[1], y, weight)
        loss.backward()
        return loss

    opt.step(closure)
    return {"scale": round(float(p[0]), 4), "bias": round(float(p[1]), 4)}


def temperature(scores, label):
    s, y = torch.tensor(scores), torch.tensor(label)
    t = torch.ones(1, dtype=torch.double, requires_grad=True)
    opt = torch.optim.LBFGS([t], max_iter=100)

    def closure():
        opt.zero_grad()
        loss = torch.nn.functional.cross_entropy(t * s, y)
        loss.backward()
        return loss

    opt.step(closure)
    return {"scale": round(float(t), 4)}


def calibrate(model, held):
    groups = [g for name, gs in sorted(held.items()) for g in gs[:15]]
    can, rel, ent, labels = logits(model, groups)
    a, r, e = labels[:, 0] >= 0, labels[:, 1] >= 0, (labels[:, 2] >= 0) & (labels[:, 2] < 3)
    return {
        "answerable": platt(can[a], labels[a, 0]),
        "relevance": platt(rel[r], labels[r, 1]),
        "entailment": temperature(ent[e], labels[e, 2]),
    }


CASES = [
    ("How long is the notice period?", "Handbook > Leaving", "Either side may end the contract with a notice of four weeks. During the trial period of three months a notice of one week is enough."),
    ("Who approves travel?", "Handbook > Travel", "Trips within the country are approved by the team lead. Trips abroad need the approval of the head of department as well."),
    ("The trial period lasts three months.", "", "Either side may end the contract with a notice of four weeks. During the trial period of three months a notice of one week is enough."),
    ("The team lead approves trips abroad alone.", "Handbook > Travel", "Trips within the country are approved by the team lead. Trips abroad need the approval of the head of department as well."),
    ("Which port does the server listen on?", "", "The server listens on port 8080 unless the flag -addr says otherwise; metrics are served on port 9090."),
    ("The server listens on port 9090 by default.", "Operations", "The server listens on port 8080 unless the flag -addr says otherwise; metrics are served on port 9090."),
    ("What is the capital of Peru?", "Harbour news", "The new crane in Porto was installed in May. It lifts forty tonnes and replaces two older ones."),
    ("Adults take 200 mg twice a day.", "Dosage", "Adults take 400 mg and children 200 mg, each twice a day after a meal."),
    ("How do I reset the device?", "Manual > Reset", "Hold the button for ten seconds until the lamp blinks red. All settings are lost."),
    ("All settings are kept after a reset.", "Manual > Reset", "Hold the button for ten seconds until the lamp blinks red. All settings are lost."),
]


def case_texts(paths):
    """The fixed cases, and headings and sentences of Markdown files beside their paragraphs."""
    yield from CASES
    for path in paths:
        heading, earlier = "", "What is this about?"
        for block in open(path, encoding="utf-8").read().split("\n\n"):
            block = block.strip()
            if block.startswith("#"):
                heading = block.lstrip("# ").split("\n")[0]
            elif len(block.split()) > 12 and not block.startswith(("|", "```", "    ", "-")):
                text = " ".join(block.split()[:110])
                yield f"What about {heading.lower()}?", heading, text
                yield earlier, heading, text
                earlier = data.sentences(text)[0]
                earlier = text[earlier[0] : earlier[1]].strip()[:200]


@torch.no_grad()
def parity(model, encoder, texts, most):
    cases = []
    for a, heading, text in texts:
        e = encoder.pair(a, heading, text)
        if e is None or len(cases) >= most:
            continue
        b = tensors([[e]])
        span, relevance, entail = model(b["ids"], b["types"], b["lengths"])
        rounded = lambda t: [round(float(v), 5) for v in t.flatten()]
        cases.append({"a": a, "heading": heading, "text": text, "start": rounded(span[0, :, 0]), "end": rounded(span[0, :, 1]),
                      "relevance": round(float(relevance[0]), 5), "entailment": rounded(entail[0])})
    return cases


def write(folder, config, weights, cases):
    os.makedirs(folder, exist_ok=True)
    save_file({k: v.contiguous() for k, v in weights.items()}, os.path.join(folder, "model.safetensors"))
    with open(os.path.join(folder, "reader.json"), "w") as f:
        json.dump(config, f, indent=1)
        f.write("\n")
    with open(os.path.join(folder, "parity.json"), "w") as f:
        json.dump({"cases": cases}, f, ensure_ascii=False)
        f.write("\n")


def tiny(folder):
    """A random reader of two layers over single characters, with the encoder that it shares its embeddings with."""
    import string

    torch.manual_seed(7)
    config = {"architectures": ["BertModel"], "model_type": "bert", "hidden_act": "gelu", "layer_norm_eps": 1e-12, "hidden_size": 48,
              "intermediate_size": 96, "num_attention_heads": 4, "num_hidden_layers": 2, "max_position_embeddings": 300, "type_vocab_size": 2}
    characters = string.ascii_lowercase + string.digits + string.punctuation
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *characters, *("##" + c for c in string.ascii_lowercase + string.digits)]
    config["vocab_size"] = len(vocabulary)
    model = Reader(config).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p) * 0.1)
    base = os.path.join(folder, "encoder")
    os.makedirs(base, exist_ok=True)
    with open(os.path.join(base, "config.json"), "w") as f:
        json.dump(config, f, indent=1)
    with open(os.path.join(base, "vocab.txt"), "w") as f:
        f.write("\n".join(vocabulary) + "\n")
    with open(os.path.join(base, "tokenizer_config.json"), "w") as f:
        json.dump({"do_lower_case": True, "tokenizer_class": "BertTokenizer"}, f)
    trunk = trunk_tensors(model)
    trunk.update({
        "embeddings.word_embeddings.weight": model.words.weight, "embeddings.position_embeddings.weight": model.positions.weight,
        "embeddings.token_type_embeddings.weight": model.types.weight, "embeddings.LayerNorm.weight": model.norm.weight, "embeddings.LayerNorm.bias": model.norm.bias})
    save_file({k: v.detach().clone().contiguous() for k, v in trunk.items()}, os.path.join(base, "model.safetensors"))

    encoder = data.Encoder(base, 280)
    weights = heads(model)
    weights.update(trunk_tensors(model, 1))
    one = {"scale": 1.0, "bias": 0.0}
    write(folder, {"encoder": "tiny", "layers": 2, "max_tokens": 280, "answerable": one, "relevance": one, "entailment": {"scale": 1.0}},
          weights, parity(model, encoder, CASES, 20))


def averaged(checkpoints):
    """The weighted mean of the weights of checkpoints, each "FILE" or "FILE:WEIGHT".

    Checkpoints of one training run, each at the end of a falling rate, are better together than the last of them.
    Source: Wortsman et al., "Model soups", ICML 2022.
    """
    total, mean = 0.0, {}
    for name in checkpoints:
        path, _, weight = name.partition(":")
        weight = float(weight or 1)
        total += weight
        for k, v in torch.load(path, map_location="cpu")["model"].items():
            mean[k] = mean.get(k, 0) + weight * v.float()
    return {k: v / total for k, v in mean.items()}


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--tiny", default="")
    p.add_argument("--checkpoint", nargs="+", metavar="FILE[:WEIGHT]", help="several are averaged, by their weights")
    p.add_argument("--groups", help="the folder of the training run")
    p.add_argument("--encoder", help="gte-small, in Hugging Face's layout")
    p.add_argument("--texts", nargs="*", default=[], help="Markdown files for parity cases")
    p.add_argument("--to")
    args = p.parse_args()
    if args.tiny:
        tiny(args.tiny)
        return
    torch.set_num_threads(2)
    args.out, args.data, args.made, args.max_tokens, args.seed = args.groups, "", "", 232, 1
    _, held = prepare(args)
    with open(os.path.join(args.encoder, "config.json")) as f:
        config = json.load(f)
    config["num_hidden_layers"] = LAYERS
    model = Reader(config).eval()
    model.load_state_dict(averaged(args.checkpoint))
    dequantise_(model)
    settings = {"encoder": "gte-small-int8", "layers": LAYERS, "max_tokens": 256, **calibrate(model, held)}
    print(settings)
    encoder = data.Encoder(args.encoder, 232)
    write(args.to, settings, quantised(model), parity(model, encoder, case_texts(args.texts), 200))


if __name__ == "__main__":
    main()
