package ui

import (
	"strings"
	"time"

	"github.com/assay-rag/assay/engine"
)

// A proofBadge is how pages show whether a run is what the audit log recorded.
type proofBadge struct {
	Class, Icon, Word string
	Says              string
	Check             engine.ProofCheck
	Signers           []signer
}

// A signer is a verifier key in the form NAME+HASH+KEY.
type signer struct{ Name, Hash, Key string }

func signerOf(key string) signer {
	s := signer{Key: key}
	if parts := strings.SplitN(key, "+", 3); len(parts) == 3 {
		s.Name, s.Hash = parts[0], parts[1]
	}
	return s
}

func signersOf(keys []string) (all []signer) {
	for _, k := range keys {
		all = append(all, signerOf(k))
	}
	return all
}

// badgeOf returns the badge of a checked proof.
func badgeOf(c engine.ProofCheck) proofBadge {
	b := proofBadge{Check: c, Signers: signersOf(c.Keys)}
	at := grouped(c.Size)
	switch c.State {
	case engine.ProofHolds:
		b.Class, b.Icon, b.Word = "good", "shield", "Unaltered since checkpoint "+at
		b.Says = "The proof of this run was just checked: all " + count(c.Entries, "entry") + " of the audit log about it are under the signed checkpoint " + at + "."
	case engine.ProofUncovered:
		b.Class, b.Icon, b.Word = "wait", "clock", "Not yet covered by a checkpoint"
		b.Says = "The newest checkpoint, " + at + ", is older than the last entry about this run. The next one covers it."
	case engine.ProofUnpublished:
		b.Class, b.Icon, b.Word = "soft", "dash", "No checkpoint published"
		b.Says = "Nobody has signed a checkpoint of the audit log yet, so nothing can be proved."
	default:
		b.Class, b.Icon, b.Word = "bad", "warning", "The proof fails"
		b.Says = "What is stored of this run is not what the audit log recorded. Do not rely on it, and tell whoever runs this server."
	}
	return b
}

// A proofPage is the data of the page about the proof of a run.
type proofPage struct {
	runHead
	ID    string
	Proof proofBadge
	At    time.Time
}

func showProof(q *request) error {
	id := q.path("id")
	check, err := q.session.CheckProof(q.ctx(), id)
	if err != nil {
		return err
	}
	p := proofPage{ID: id, Proof: badgeOf(check), At: now()}
	if check.State != engine.ProofFails { // an altered run may not be readable
		r, steps, err := q.session.Run(q.ctx(), id)
		if err != nil {
			return err
		}
		if p.runHead, err = headOf(r, steps, "proof"); err != nil {
			return err
		}
	}
	return q.render("proof.html", q.view("", "Proof", p))
}
