"""Trains the reader: one command from data to a checkpoint.

    python3 -m reader.train --data DATA --made MADE --encoder GTE --out OUT --tokens 20e6

Workers are processes that share the weights and update them without locks (Hogwild), one thread
each. With --workers 1 a run is deterministic. A checkpoint is written every few minutes and
when a file named stop appears in OUT; a run resumes from it. The log is one JSON object a line: losses, and figures on held-out groups.
"""

import argparse
import json
import os
import pickle
import random
import time

import numpy as np
import torch
import torch.multiprocessing as mp
import torch.nn.functional as F

from . import data
from .model import FROZEN, answerable, from_encoder, load_trained

LAYERS = 9  # of the encoder's 12; see docs/training.md
BATCH = 2048  # tokens, padding included
HELD_OUT = 0.02

# Weight of each family of sources; the shares of those that are there are in proportion.
MIX = {"read": 0.16, "near": 0.14, "rank": 0.05, "nli": 0.22, "made": 0.43, "written": 0.2}

# Families whose labels are exact by construction: their sources are drawn in proportion to the
# loss that is left, so what is learned already is seen less. Elsewhere a high loss may be noise.
ADAPTIVE = {"near", "made"}


def family(name):
    return name.split("/")[0]


class Stream:
    """An endless, seeded sequence of batches of groups drawn by the mixture."""

    def __init__(self, sources, mix, seed):
        self.rng = random.Random(seed)
        self.sources = sources
        self.mix = mix
        self.order = {name: [] for name in sources}
        self.names = list(sources)
        # Within a family small sets are seen more often than their size.
        self.size = {n: sum(map(len, groups)) ** 0.6 for n, groups in sources.items()}
        self.loss = {}

    def weights(self):
        """The share of each source."""
        known = {}
        for name, loss in self.loss.items():
            known.setdefault(family(name), []).append(loss)
        raw = {}
        for name in self.names:
            f = family(name)
            hard = 1.0
            if f in ADAPTIVE and name in self.loss:
                hard = min(2.0, max(0.7, self.loss[name] / (sum(known[f]) / len(known[f]))))
            raw[name] = self.size[name] * hard
        totals = {}
        for name, w in raw.items():
            totals[family(name)] = totals.get(family(name), 0) + w
        return [self.mix[family(n)] * raw[n] / totals[family(n)] for n in self.names]

    def seen(self, name, loss):
        """Note the loss of a group."""
        self.loss[name] = loss if name not in self.loss else 0.98 * self.loss[name] + 0.02 * loss

    def draw(self, weights):
        name = self.rng.choices(self.names, weights)[0]
        if not self.order[name]:
            self.order[name] = list(range(len(self.sources[name])))
            self.rng.shuffle(self.order[name])
        return name, self.sources[name][self.order[name].pop()]

    def batches(self):
        while True:
            weights = self.weights()
            pool = sorted((self.draw(weights) for _ in range(1500)), key=lambda g: max(len(e.ids) for e in g[1]))
            cut, batch, longest = [], [], 0
            for name, group in pool:
                most = max(longest, max(len(e.ids) for e in group))
                if batch and most * (sum(len(g) for _, g in batch) + len(group)) > BATCH:
                    cut.append(batch)
                    batch, most = [], max(len(e.ids) for e in group)
                batch.append((name, group))
                longest = most
            cut.append(batch)
            self.rng.shuffle(cut)
            yield from cut


def tensors(groups):
    """A batch as tensors; group numbers tell which examples are compared."""
    examples = [e for g in groups for e in g]
    longest = max(len(e.ids) for e in examples)
    ids = np.zeros((len(examples), longest), np.int64)
    types, text = np.zeros_like(ids), np.zeros(ids.shape, bool)
    for i, e in enumerate(examples):
        ids[i, : len(e.ids)] = e.ids
        types[i, e.second : len(e.ids)] = 1
        text[i, e.text[0] : e.text[1]] = True
    label = lambda field: torch.tensor([getattr(e, field) for e in examples])
    return {
        "ids": torch.from_numpy(ids),
        "types": torch.from_numpy(types),
        "text": torch.from_numpy(text),
        "lengths": torch.tensor([len(e.ids) for e in examples]),
        "group": torch.tensor([i for i, g in enumerate(groups) for _ in g]),
        **{f: label(f) for f in ("start", "end", "answerable", "relevance", "entailment")},
    }


def pairwise(score, positive, negative, group):
    """Mean logistic loss over pairs of one group, a positive and a negative."""
    pairs = positive[:, None] & negative[None, :] & (group[:, None] == group[None, :])
    if not bool(pairs.any()):
        return None
    return F.softplus(1 - (score[:, None] - score[None, :]))[pairs].mean()


def entailment_loss(logp, label):
    """The loss of each example, whose label may only say what it is not; any value where there is no label."""
    loss = -logp.gather(1, label.clamp(0, 2)[:, None])[:, 0]
    loss = torch.where(label == data.NOT_SUPPORTED, -torch.logsumexp(logp[:, 1:], -1), loss)
    return torch.where(label == data.NOT_CONTRADICTED, -torch.logsumexp(logp[:, ::2], -1), loss)


def losses(out, b):
    """The loss of each head on a batch, by name; heads without a label are absent."""
    span, relevance, entail = out
    found = {}
    can = answerable(span, b["text"])
    outside = ~b["text"]
    reads = b["entailment"] < 0
    null = outside.clone()
    null[:, 0] = False
    for name, rows_, blocked in (("span", reads & (b["start"] >= 0), null), ("decisive", ~reads & (b["start"] > 0), outside)):
        if bool(rows_.any()):
            masked = span.masked_fill(blocked[:, :, None], -1e4)[rows_]
            ce = F.cross_entropy(masked[..., 0], b["start"][rows_]) + F.cross_entropy(masked[..., 1], b["end"][rows_])
            found[name] = ce / 2 * (1.0 if name == "span" else 0.3)
    known = reads & (b["answerable"] >= 0)
    if bool(known.any()):
        found["answerable"] = 0.5 * F.binary_cross_entropy_with_logits(can[known], b["answerable"][known].float())
    known = b["relevance"] >= 0
    if bool(known.any()):
        found["relevance"] = 0.5 * F.binary_cross_entropy_with_logits(relevance[known], b["relevance"][known].float())
    known = ~reads
    if bool(known.any()):
        logp = F.log_softmax(entail[known], -1)
        label = b["entailment"][known]
        found["entailment"] = entailment_loss(logp, label).mean()
    support = entail[:, 0] - torch.logsumexp(entail[:, 1:], -1)
    for name, score, positive, negative in (
        ("answerable pairs", can, b["answerable"] == 1, b["answerable"] == 0),
        ("relevance pairs", relevance, b["relevance"] == 1, b["relevance"] == 0),
        ("twins", support, b["entailment"] == 0, (b["entailment"] > 0) & (b["entailment"] != data.NOT_CONTRADICTED)),
    ):
        loss = pairwise(score, positive, negative, b["group"])
        if loss is not None:
            found[name] = 0.5 * loss
    return found


@torch.no_grad()
def group_losses(out, b, n):
    """The classification loss of each of n groups: of entailment, or of answerability."""
    span, _, entail = out
    logp = F.log_softmax(entail, -1)
    label = b["entailment"]
    exact = entailment_loss(logp, label)
    reads = F.binary_cross_entropy_with_logits(answerable(span, b["text"]), b["answerable"].clamp(0, 1).float(), reduction="none")
    loss = torch.where(label >= 0, exact, reads)
    total = torch.zeros(n).index_add(0, b["group"], loss)
    return (total / torch.bincount(b["group"], minlength=n)).tolist()


def auc(positive, negative):
    """The probability that a positive scores above a negative."""
    if not len(positive) or not len(negative):
        return None
    order = np.concatenate([positive, negative]).argsort(kind="stable").argsort(kind="stable") + 1
    return float((order[: len(positive)].sum() - len(positive) * (len(positive) + 1) / 2) / (len(positive) * len(negative)))


@torch.no_grad()
def figures(model, held, most):
    """Figures on at most so many held-out groups of each source."""
    result = {}
    for name, groups in sorted(held.items()):
        groups = groups[:most]
        can, rel, sup, labels, exact, spans = [], [], [], [], 0, 0
        order = sorted(groups, key=lambda g: max(len(e.ids) for e in g))
        for i in range(0, len(order), 12):
            b = tensors(order[i : i + 12])
            span, relevance, entail = model(b["ids"], b["types"], b["lengths"])
            can += answerable(span, b["text"]).tolist()
            rel += relevance.tolist()
            sup += (entail[:, 0] - torch.logsumexp(entail[:, 1:], -1)).tolist()
            labels += list(zip(b["answerable"].tolist(), b["relevance"].tolist(), b["entailment"].tolist(), entail.argmax(-1).tolist()))
            inside = span.masked_fill(~b["text"][:, :, None], -1e4)
            hit = (inside[..., 0].argmax(1) <= b["end"]) & (inside[..., 1].argmax(1) >= b["start"]) & (b["start"] > 0)
            exact += int(hit.sum())
            spans += int((b["start"] > 0).sum())
        pick = lambda score, at, want: np.array([s for s, l in zip(score, labels) if want(l[at])])
        entries = {
            "span overlap": exact / spans if spans else None,
            "answerable AUC": auc(pick(can, 0, lambda v: v == 1), pick(can, 0, lambda v: v == 0)),
            "relevance AUC": auc(pick(rel, 1, lambda v: v == 1), pick(rel, 1, lambda v: v == 0)),
            "support AUC": auc(pick(sup, 2, lambda v: v == 0), pick(sup, 2, lambda v: 0 < v < data.NOT_CONTRADICTED)),
            "accuracy": float(np.mean([l[3] == l[2] for l in labels if 0 <= l[2] < 3])) if any(0 <= l[2] < 3 for l in labels) else None,
        }
        result[name] = {k: round(v, 3) for k, v in entries.items() if v is not None}
    return result


def work(rank, model, shared, sources, held, args):
    torch.set_num_threads(1)
    torch.manual_seed(args.seed + rank)
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=args.rate, weight_decay=0.01, fused=True)
    checkpoint = os.path.join(args.out, "checkpoint.pt")
    if os.path.exists(checkpoint):
        optimizer.load_state_dict(torch.load(checkpoint, mmap=True)["optimizer"])
    log = open(os.path.join(args.out, "log.jsonl"), "a")
    write = lambda **entry: (log.write(json.dumps(entry) + "\n"), log.flush())
    mix = dict(MIX, **json.loads(args.mix)) if args.mix else MIX
    mix = {f: w for f, w in mix.items() if any(family(n) == f for n in sources)}
    stream = Stream(sources, mix, args.seed * 1000 + rank + int(shared[0]) % 997)
    sums, began, saved, step = {}, time.time(), time.time(), 0
    for named in stream.batches():
        groups = [g for _, g in named]
        tokens = float(shared[0])
        if tokens >= args.tokens or os.path.exists(os.path.join(args.out, "stop")):
            break
        b = tensors(groups)
        warm = min(1.0, (step + 1) / 150)
        left = (args.tokens - tokens) / max(1.0, args.decay)
        for g in optimizer.param_groups:
            g["lr"] = args.rate * warm * min(1.0, left)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.bf16):
            out = model(b["ids"], b["types"], b["lengths"], frozen=FROZEN)
        out = [o.float() for o in out]
        for (name, _), loss in zip(named, group_losses(out, b, len(groups))):
            stream.seen(name, loss)
        found = losses(out, b)
        sum(found.values()).backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        shared[0] += int(b["lengths"].sum())
        shared[1] += len(b["ids"])
        step += 1
        for name, v in found.items():
            n, total = sums.get(name, (0, 0.0))
            sums[name] = (n + 1, total + float(v.detach()))
        if rank == 0 and step % 100 == 0:
            write(tokens=float(shared[0]), examples=int(shared[1]), minutes=round((time.time() - began) / 60, 1),
                  losses={k: round(t / n, 3) for k, (n, t) in sorted(sums.items())})
            sums = {}
        if rank == 0 and time.time() - saved > args.save * 60:
            save(model, optimizer, shared, checkpoint)
            write(tokens=float(shared[0]), figures=figures(model, held, 8))
            saved = time.time()
    if rank == 0:
        save(model, optimizer, shared, checkpoint)
        write(tokens=float(shared[0]), figures=figures(model, held, 30), done=True)


def save(model, optimizer, shared, path):
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "shared": shared.tolist()}, path + ".tmp")
    os.replace(path + ".tmp", path)


def prepare(args):
    """Tokenized groups, kept in a file beside the checkpoint, split into training and held-out ones."""
    path = os.path.join(args.out, "groups.pickle")
    if not os.path.exists(path):
        encoder = data.Encoder(args.encoder, args.max_tokens)
        sources = data.load(args.data, args.made, args.written, encoder, args.seed)
        with open(path + ".tmp", "wb") as f:
            pickle.dump(sources, f, protocol=5)
        os.replace(path + ".tmp", path)
    with open(path, "rb") as f:
        sources = pickle.load(f)
    sources = {n: [g for g in ([e for e in g if e] for g in gs) if g] for n, gs in sources.items()}
    held = {}
    for name, groups in sources.items():
        rng = random.Random(name)
        rng.shuffle(groups)
        n = max(1, min(200, int(len(groups) * HELD_OUT)))
        held[name], sources[name] = groups[:n], groups[n:]
    return sources, held


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--data", required=True)
    p.add_argument("--made", default="")
    p.add_argument("--written", default="", help="folder of written sections")
    p.add_argument("--encoder", required=True)
    p.add_argument("--out", required=True)
    p.add_argument("--tokens", type=float, default=50e6)
    p.add_argument("--decay", type=float, default=5e6, help="tokens at the end over which the rate falls to 0")
    p.add_argument("--rate", type=float, default=1.2e-4)
    p.add_argument("--mix", default="", help="JSON that overrides the shares of the families")
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--start", default="", help="a folder of weights that export wrote, to go on from")
    p.add_argument("--bf16", action="store_true", help="compute in bfloat16; for processors that multiply it")
    p.add_argument("--max-tokens", type=int, default=232)
    p.add_argument("--save", type=float, default=8, help="minutes between checkpoints")
    p.add_argument("--seed", type=int, default=1)
    args = p.parse_args()
    os.makedirs(args.out, exist_ok=True)
    torch.set_num_threads(1)
    sources, held = prepare(args)
    sources = {n: g for n, g in sources.items() if g}
    print({n: len(g) for n, g in sources.items()}, flush=True)
    torch.manual_seed(args.seed)
    model = from_encoder(args.encoder, LAYERS)
    if args.start:
        load_trained(model, args.start)
    shared = torch.zeros(2, dtype=torch.float64)
    checkpoint = os.path.join(args.out, "checkpoint.pt")
    if os.path.exists(checkpoint):
        saved = torch.load(checkpoint)
        model.load_state_dict(saved["model"])
        shared = torch.tensor(saved["shared"], dtype=torch.float64)
    model.freeze()
    model.share_memory()
    shared.share_memory_()
    if args.workers == 1:
        work(0, model, shared, sources, held, args)
        return
    mp.start_processes(work, (model, shared, sources, held, args), nprocs=args.workers, start_method="fork")


if __name__ == "__main__":
    main()
