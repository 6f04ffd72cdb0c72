package audit_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/audit"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/sqlite"
)

// A proved is a tenant with runs, and the key that signs its checkpoints.
type proved struct {
	t      *testing.T
	tenant store.Tenant
	key    audit.Key
	origin string
}

const cited = "Receipts are kept for ten years."

func newProved(t *testing.T) *proved {
	t.Helper()
	s, err := sqlite.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tenant, err := s.Tenant(t.Context(), "default")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tenant.Close(); err != nil {
			t.Error(err)
		}
	})
	key, err := audit.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	p := &proved{t: t, tenant: tenant, key: key}
	if p.origin, err = audit.Origin(t.Context(), tenant.Audit()); err != nil {
		t.Fatal(err)
	}
	return p
}

// ask stores a run with a read step and an answer that cites it.
func (p *proved) ask(id string) {
	p.t.Helper()
	lease, err := p.tenant.Runs().Create(p.t.Context(), assay.Run{
		ID: id, Principal: assay.Local(), Question: "How long are receipts kept?", Request: json.RawMessage(`{"collections":[]}`),
	})
	if err != nil {
		p.t.Fatal(err)
	}
	text := "# Receipts\n\n" + cited + strings.Repeat(" More about receipts.", 30)
	records := []assay.Record{
		{Path: "search", Kind: assay.StepSearch, Input: []byte(`{"q":1}`), Output: []byte(`{"hits":[]}`)},
		{Path: "read", Kind: assay.StepRead, Input: []byte(`[{"document":"d","version":"v","start":10,"end":900}]`), Output: mustJSON(p.t, []any{map[string]any{"text": text}})},
		{Path: "verify", Kind: assay.StepVerify, Input: []byte(`[]`), Output: []byte(`[{"verdict":"supported"}]`)},
	}
	for _, r := range records {
		if _, err := lease.Append(p.t.Context(), r); err != nil {
			p.t.Fatal(err)
		}
	}
	answer := &assay.Answer{Run: id, Status: assay.Answered, Text: cited + " [1]", Citations: []assay.Citation{{
		Number: 1, Document: "d", Version: "v", URI: "receipts.md", Start: 22, End: 22 + len(cited), Quote: cited,
	}}}
	if err := errors.Join(lease.Finish(p.t.Context(), assay.RunDone, answer, ""), lease.Close()); err != nil {
		p.t.Fatal(err)
	}
	if err := p.tenant.Audit().Append(p.t.Context(), store.Act{Kind: "review.decided", Subject: id, Actor: assay.Principal{User: "rev"}, Reason: "right"}); err != nil {
		p.t.Fatal(err)
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// prove returns the proof of a run under a checkpoint of the whole log.
func (p *proved) prove(id string, withhold bool) audit.Proof {
	p.t.Helper()
	size, err := p.tenant.Audit().Size(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	root, err := audit.RootAt(p.t.Context(), p.tenant.Audit(), size)
	if err != nil {
		p.t.Fatal(err)
	}
	signed, err := audit.Sign(audit.Checkpoint{Origin: p.origin, Size: size, Root: root}, p.key)
	if err != nil {
		p.t.Fatal(err)
	}
	proof, err := audit.Prove(p.t.Context(), p.tenant.Audit(), id, signed, withhold)
	if err != nil {
		p.t.Fatal(err)
	}
	return proof
}

func (p *proved) verifier() *audit.Verifier {
	p.t.Helper()
	v, err := audit.NewVerifier(p.key.Public(p.origin))
	if err != nil {
		p.t.Fatal(err)
	}
	return v
}

func (p *proved) check(proof audit.Proof) (audit.Account, error) {
	p.t.Helper()
	data, err := proof.Bytes()
	if err != nil {
		p.t.Fatal(err)
	}
	return audit.CheckProof(data, p.verifier())
}

func TestProof(t *testing.T) {
	t.Parallel()
	p := newProved(t)
	for i := range 5 {
		p.ask(fmt.Sprint("run", i))
	}
	a, err := p.check(p.prove("run2", false))
	if err != nil {
		t.Fatal(err)
	}
	if a.Question == nil || *a.Question != "How long are receipts kept?" || a.Answer == nil || a.Answer.Text != cited+" [1]" || a.State != assay.RunDone {
		t.Errorf("%+v", a)
	}
	if a.Principal == nil || a.Principal.User != "local" || len(a.Records) != 3 || len(a.Acts) != 3 || a.Erased || a.Withheld {
		t.Errorf("%+v", a)
	}
	if len(a.Evidence) != 1 || a.Evidence[0].Step != "read" || !strings.Contains(a.Evidence[0].Text, cited) {
		t.Errorf("evidence %+v", a.Evidence)
	}
	if last := a.Acts[2]; last.Kind != "review.decided" || last.Actor.User != "rev" || last.Reason != "right" {
		t.Errorf("%+v", last)
	}
	p.ask("\u202esteers\u0085")
	steering := p.prove("\u202esteers\u0085", false)
	if data, err := steering.Bytes(); err != nil || bytes.ContainsAny(data, "\u202e\u0085") {
		t.Errorf("it steers the terminal, %v", err)
	}
	if _, err := p.check(steering); err != nil {
		t.Error(err)
	}
	one, two := p.prove("run2", false), p.prove("run2", false)
	first, _ := one.Bytes()
	second, _ := two.Bytes()
	if !bytes.Equal(first, second) {
		t.Error("two proofs of the same state differ")
	}
	if _, err := audit.Prove(t.Context(), p.tenant.Audit(), "nosuch", audit.Signed{}, false); !errors.Is(err, assay.ErrNotFound) {
		t.Error(err)
	}
}

// TestProofWithheld checks that a proof without payloads has no text of documents and holds.
func TestProofWithheld(t *testing.T) {
	t.Parallel()
	p := newProved(t)
	p.ask("run")
	proof := p.prove("run", true)
	data, err := proof.Bytes()
	if err != nil || bytes.Contains(data, []byte("Receipts are")) {
		t.Errorf("%v: it has text of a document: %s", err, data)
	}
	a, err := p.check(proof)
	if err != nil || !a.Withheld || a.Answer != nil || a.Question == nil || len(a.Records) != 3 || a.State != "" {
		t.Errorf("%+v, %v", a, err)
	}
}

// TestProofErased checks proofs of runs that were erased, deleted or lost the payload of one act.
func TestProofErased(t *testing.T) {
	t.Parallel()
	p := newProved(t)
	p.ask("erased")
	p.ask("deleted")
	p.ask("act")
	ctx, why := t.Context(), store.Act{Reason: "asked for"}
	var decided int64
	for _, e := range p.prove("act", false).Entries {
		if strings.Contains(e.Header, "review.decided") {
			decided = e.Sequence
		}
	}
	err := errors.Join(p.tenant.Runs().Erase(ctx, "erased", why),
		p.tenant.Runs().Delete(ctx, "deleted", store.Act{Kind: store.KindRunDeleted, Reason: "asked for"}),
		p.tenant.Audit().Erase(ctx, decided, why))
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"erased", "deleted"} {
		a, err := p.check(p.prove(id, false))
		if err != nil {
			t.Errorf("%s: %v", id, err)
			continue
		}
		last := a.Acts[len(a.Acts)-1]
		if !a.Erased || a.Question != nil || a.Answer != nil || len(a.Records) != 3 || last.Reason != "asked for" || a.Records[1].Path != "read" {
			t.Errorf("%s: %+v", id, a)
		}
	}
	a, err := p.check(p.prove("act", false))
	if err != nil || !a.Erased || a.Answer == nil {
		t.Errorf("act: %+v, %v", a, err)
	}
}

// TestTamperedProof changes each part of a proof. CheckProof finds each, and names it.
func TestTamperedProof(t *testing.T) {
	t.Parallel()
	p := newProved(t)
	for i := range 4 {
		p.ask(fmt.Sprint("run", i))
	}
	if err := p.tenant.Runs().Erase(t.Context(), "run3", store.Act{}); err != nil {
		t.Fatal(err)
	}
	other := newProved(t)
	other.ask("run1")
	change := func(text *string, old, new string) *string {
		if !strings.Contains(*text, old) {
			t.Errorf("%q is not in %q", old, *text)
		}
		changed := strings.Replace(*text, old, new, 1)
		return &changed
	}
	at := func(q audit.Proof, word string) *audit.ProofEntry {
		i := slices.IndexFunc(q.Entries, func(e audit.ProofEntry) bool { return strings.Contains(e.Header, word) })
		return &q.Entries[i]
	}
	for _, test := range []struct {
		name string
		do   func(*audit.Proof)
		want string
	}{
		{"the answer", func(q *audit.Proof) { q.Answer = change(q.Answer, "ten years. [1]", "two years. [1]") }, "the answer is not the one"},
		{"a quote", func(q *audit.Proof) { q.Answer = change(q.Answer, `"quote":"Receipts`, `"quote":"receipts`) }, "the answer is not the one"},
		{"the answer removed", func(q *audit.Proof) { q.Answer = nil }, "the answer is not the one"},
		{"the question", func(q *audit.Proof) { q.Question = change(q.Question, "long", "big") }, "the question is not the one"},
		{"the request", func(q *audit.Proof) { q.Request = change(q.Request, "[]", `["hr"]`) }, "the request is not the one"},
		{"a step's header", func(q *audit.Proof) { h := at(*q, `"read"`); h.Header = *change(&h.Header, `"read"`, `"rear"`) }, "not under the checkpoint"},
		{"a step's payload", func(q *audit.Proof) {
			e := at(*q, `"path":"verify"`)
			e.Payload = change(e.Payload, "supported", "refuted")
		}, "does not match its hash"},
		{"a step's salt", func(q *audit.Proof) { at(*q, `"path":"verify"`).Salt[0] ^= 1 }, "does not match its hash"},
		{"a long value", func(q *audit.Proof) { q.Values[0] = *change(&q.Values[0], "ten", "two") }, "is missing"},
		{"a long value dropped", func(q *audit.Proof) { q.Values = q.Values[1:] }, "is missing"},
		{"a long value added", func(q *audit.Proof) { q.Values = append(q.Values, "x") }, "value"},
		{"a step dropped", func(q *audit.Proof) { q.Entries = slices.Delete(q.Entries, 2, 3) }, "come before it"},
		{"a step's payload dropped", func(q *audit.Proof) { e := at(*q, `"path":"verify"`); e.Payload, e.Salt = nil, nil }, "no act erased it"},
		{"a payload without a salt", func(q *audit.Proof) { at(*q, `"path":"verify"`).Salt = nil }, "salt"},
		{"steps swapped", func(q *audit.Proof) { q.Entries[1], q.Entries[2] = q.Entries[2], q.Entries[1] }, "comes after"},
		{"an entry twice", func(q *audit.Proof) { q.Entries = slices.Insert(q.Entries, 2, q.Entries[1]) }, "comes after"},
		{"an entry's place", func(q *audit.Proof) { q.Entries[5].Sequence++ }, "not under the checkpoint"},
		{"the begin dropped", func(q *audit.Proof) { q.Entries = q.Entries[1:] }, "does not begin"},
		{"the end dropped", func(q *audit.Proof) {
			q.Entries = slices.DeleteFunc(q.Entries, func(e audit.ProofEntry) bool { return strings.Contains(e.Header, "run.ended") })
		}, "the log has none"},
		{"the reviewer", func(q *audit.Proof) {
			e := at(*q, "review.decided")
			e.Payload = change(e.Payload, `"rev"`, `"ann"`)
		}, "does not match its hash"},
		{"an inclusion proof", func(q *audit.Proof) { q.Entries[0].Inclusion[0][0] ^= 1 }, "not under the checkpoint"},
		{"no inclusion proof", func(q *audit.Proof) { q.Entries[0].Inclusion = nil }, "not under the checkpoint"},
		{"the size of the checkpoint", func(q *audit.Proof) { q.Checkpoint = strings.Replace(q.Checkpoint, "\n2", "\n3", 1) }, "signature"},
		{"another checkpoint", func(q *audit.Proof) { o := other.prove("run1", false); q.Checkpoint, q.Keys = o.Checkpoint, o.Keys }, "checkpoint"},
		{"a key", func(q *audit.Proof) { q.Keys = []string{other.key.Public(p.origin)} }, "keys"},
		{"keys added", func(q *audit.Proof) { q.Keys = append(q.Keys, other.key.Public(p.origin)) }, "keys"},
		{"the run", func(q *audit.Proof) { q.Run = "run2" }, "is about"},
		{"a step of another run", func(q *audit.Proof) { q.Entries = append(q.Entries, p.prove("run2", false).Entries[0]) }, "is about"},
		{"stored", func(q *audit.Proof) { q.Stored = false }, "no act did that"},
		{"withheld", func(q *audit.Proof) { q.Withheld = true }, "withheld"},
		{"no entries", func(q *audit.Proof) { q.Entries = []audit.ProofEntry{} }, "no entries"},
		{"an erased run's question", func(q *audit.Proof) { *q = p.prove("run3", false); text := "How?"; q.Question = &text }, "was erased"},
		{"an erasure dropped", func(q *audit.Proof) { *q = p.prove("run3", false); q.Entries = q.Entries[:len(q.Entries)-1] }, "no act erased it"},
	} {
		q := p.prove("run1", false)
		test.do(&q)
		_, err := p.check(q)
		if err == nil || !strings.Contains(err.Error(), test.want) || assay.ExitCode(err) != assay.ExitDamaged {
			t.Errorf("%s: %v (%d), want %q", test.name, err, assay.ExitCode(err), test.want)
		}
	}
}

// TestProofBytes changes every tenth byte of a proof.
func TestProofBytes(t *testing.T) {
	t.Parallel()
	p := newProved(t)
	p.ask("run")
	proof := p.prove("run", false)
	data, err := proof.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	v := p.verifier()
	if _, err := audit.CheckProof(data, v); err != nil {
		t.Fatal(err)
	}
	step := 1
	if testing.Short() {
		step = 10
	}
	for i := 0; i < len(data); i += step {
		altered := bytes.Clone(data)
		altered[i] ^= 1
		if _, err := audit.CheckProof(altered, v); err == nil {
			t.Errorf("byte %d, in %q, was altered, and the proof holds", i, data[max(0, i-20):min(len(data), i+20)])
		}
	}
	if _, err := audit.CheckProof(append(data, '\n'), v); err == nil {
		t.Error("more after the end")
	}
}

// TestSignatureEncoding checks that a signature has one encoding only, whatever its last bits are.
func TestSignatureEncoding(t *testing.T) {
	t.Parallel()
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	key, err := audit.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	signed, err := audit.Sign(audit.Checkpoint{Origin: "assay-audit/x", Size: 1}, key)
	if err != nil {
		t.Fatal(err)
	}
	v, err := audit.NewVerifier(key.Public("assay-audit/x"))
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.LastIndexByte(signed.Note, '=') - 1
	last := strings.IndexByte(alphabet, signed.Note[at])
	for bits := range 4 {
		altered := bytes.Clone(signed.Note)
		altered[at] = alphabet[last/4*4+bits]
		if _, err := v.Open(altered); (err == nil) != (bits == last%4) {
			t.Errorf("the last letter %c instead of %c: %v", altered[at], signed.Note[at], err)
		}
	}
}

func FuzzProof(f *testing.F) {
	key, err := audit.NewKey()
	if err != nil {
		f.Fatal(err)
	}
	v, err := audit.NewVerifier(key.Public("assay-audit/x"))
	if err != nil {
		f.Fatal(err)
	}
	for _, p := range []audit.Proof{
		{Program: "assay proof", Format: 1},
		{Program: "assay proof", Format: 1, Run: "r", Entries: []audit.ProofEntry{{Sequence: 1, Header: `{"act":"run.begun"}`}}, Values: []string{"x"}},
		{Program: "assay proof", Format: 2},
	} {
		data, err := p.Bytes()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := audit.ParseProof(data)
		if err != nil {
			return
		}
		if again, err := p.Bytes(); err != nil || !bytes.Equal(again, data) {
			t.Errorf("%v: %q became %q", err, data, again)
		}
		if _, err := audit.CheckProof(data, v); err == nil {
			t.Errorf("a proof that nobody signed holds: %q", data)
		}
	})
}
