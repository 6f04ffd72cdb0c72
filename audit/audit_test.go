package audit_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	f_log "github.com/transparency-dev/formats/log"
	f_note "github.com/transparency-dev/formats/note"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"golang.org/x/mod/sumdb/note"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/audit"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/sqlite"
)

// openTenant opens a tenant of a store in a directory.
func openTenant(t testing.TB, dir string) store.Tenant {
	t.Helper()
	s, err := sqlite.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	tenant, err := s.Tenant(t.Context(), "default")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(tenant.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
	return tenant
}

// appendActs appends n acts.
func appendActs(t testing.TB, a store.Audit, n int) {
	t.Helper()
	for i := range n {
		if err := a.Append(t.Context(), store.Act{Kind: "test.done", Subject: strconv.Itoa(i), Actor: assay.Local()}); err != nil {
			t.Fatal(err)
		}
	}
}

func newKey(t testing.TB) audit.Key {
	t.Helper()
	k, err := audit.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func authority(tenant store.Tenant, k audit.Key) *audit.Authority {
	return &audit.Authority{Audit: tenant.Audit(), Registry: tenant.Registry(), Actor: assay.Local(), Key: k}
}

func checkpoint(t testing.TB, x *audit.Authority) audit.Signed {
	t.Helper()
	s, err := x.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func origin(t testing.TB, a store.Audit) string {
	t.Helper()
	o, err := audit.Origin(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func verify(t testing.TB, a store.Audit, notes [][]byte, keys ...string) audit.Report {
	t.Helper()
	r, err := audit.VerifyStore(t.Context(), a, notes, keys)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestIndependentCheck has checkpoints and proofs checked by another implementation.
func TestIndependentCheck(t *testing.T) {
	tenant := openTenant(t, t.TempDir())
	k := newKey(t)
	var last audit.Signed
	for _, n := range []int{1, 1, 2, 5, 20} {
		appendActs(t, tenant.Audit(), n)
		signed := checkpoint(t, authority(tenant, k))
		v, err := note.NewVerifier(k.Public(signed.Origin))
		if err != nil {
			t.Fatal(err)
		}
		c, rest, _, err := f_log.ParseCheckpoint(signed.Note, signed.Origin, v)
		if err != nil || len(rest) > 0 || int64(c.Size) != signed.Size || !bytes.Equal(c.Hash, signed.Root[:]) {
			t.Fatalf("ParseCheckpoint = %+v, %q, %v", c, rest, err)
		}
		for e, err := range tenant.Audit().Entries(t.Context(), 0, signed.Size) {
			if err != nil {
				t.Fatal(err)
			}
			p, err := audit.Inclusion(t.Context(), tenant.Audit(), e.Sequence, signed.Size)
			if err != nil {
				t.Fatal(err)
			}
			var hashes [][]byte
			for _, h := range p {
				hashes = append(hashes, h[:])
			}
			leaf := rfc6962.DefaultHasher.HashLeaf(e.Header)
			if err := proof.VerifyInclusion(rfc6962.DefaultHasher, uint64(e.Sequence-1), c.Size, leaf, hashes, c.Hash); err != nil {
				t.Errorf("entry %d of %d: %v", e.Sequence, c.Size, err)
			}
			if err := audit.CheckInclusion(p, signed.Checkpoint, e.Sequence, e.Leaf); err != nil {
				t.Error(err)
			}
			e.Leaf[3] ^= 1
			if err := audit.CheckInclusion(p, signed.Checkpoint, e.Sequence, e.Leaf); !errors.Is(err, assay.ErrDamaged) {
				t.Errorf("entry %d with another leaf: %v", e.Sequence, err)
			}
		}
		if last.Size > 0 {
			p, err := audit.Consistency(t.Context(), tenant.Audit(), last.Size, signed.Size)
			if err != nil {
				t.Fatal(err)
			}
			var hashes [][]byte
			for _, h := range p {
				hashes = append(hashes, h[:])
			}
			err = proof.VerifyConsistency(rfc6962.DefaultHasher, uint64(last.Size), c.Size, hashes, last.Root[:], c.Hash)
			if err = errors.Join(err, audit.CheckConsistency(p, last.Checkpoint, signed.Checkpoint)); err != nil {
				t.Error(err)
			}
		}
		last = signed
	}
}

// TestCheckpointRepeats signs nothing new while nothing but checkpoints was appended.
func TestCheckpointRepeats(t *testing.T) {
	tenant := openTenant(t, t.TempDir())
	k := newKey(t)
	appendActs(t, tenant.Audit(), 3)
	first := checkpoint(t, authority(tenant, k))
	second := checkpoint(t, authority(tenant, k))
	if !bytes.Equal(first.Note, second.Note) {
		t.Errorf("the second checkpoint is\n%s\nthe first\n%s", second.Note, first.Note)
	}
	appendActs(t, tenant.Audit(), 1)
	if third := checkpoint(t, authority(tenant, k)); third.Size <= first.Size {
		t.Errorf("the third checkpoint has %d entries", third.Size)
	}
}

// TestSystemLog signs and verifies the log of the store.
func TestSystemLog(t *testing.T) {
	s, err := sqlite.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	sys, err := s.System(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close()
	k := newKey(t)
	if err := sys.Registry().Set(t.Context(), store.RegistryItem{Kind: "key", Name: "k1", Value: json.RawMessage(`{}`)}, store.Act{Kind: "key.created"}); err != nil {
		t.Fatal(err)
	}
	x := &audit.Authority{Audit: sys.Audit(), Registry: sys.Registry(), Actor: assay.Local(), Key: k}
	signed := checkpoint(t, x)
	if r := verify(t, sys.Audit(), [][]byte{signed.Note}, k.Public(signed.Origin)); len(r.Findings) > 0 || r.Covered() != signed.Size {
		t.Errorf("report: %+v", r)
	}
}

// TestKeys rotates and loses keys.
func TestKeys(t *testing.T) {
	tenant := openTenant(t, t.TempDir())
	o := origin(t, tenant.Audit())
	a, b, c := newKey(t), newKey(t), newKey(t)
	var notes [][]byte
	sign := func(x *audit.Authority) {
		t.Helper()
		appendActs(t, tenant.Audit(), 2)
		notes = append(notes, checkpoint(t, x).Note)
	}
	sign(authority(tenant, a))
	if _, err := authority(tenant, b).Checkpoint(t.Context()); err == nil {
		t.Fatal("a foreign key signed")
	}
	rotated := authority(tenant, b)
	rotated.Old = &a
	sign(rotated)
	sign(authority(tenant, b))
	for _, keys := range [][]string{{a.Public(o)}, {a.Public(o), b.Public(o)}} {
		if r := verify(t, tenant.Audit(), notes, keys...); len(r.Findings) > 0 || len(r.Checkpoints) != 3 {
			t.Errorf("verified with %d keys: %+v", len(keys), r.Findings)
		}
	}
	if r := verify(t, tenant.Audit(), notes, b.Public(o)); len(r.Findings) != 1 || len(r.Checkpoints) != 2 {
		t.Errorf("the first checkpoint was verified with the second key: %+v", r.Findings)
	}
	appendActs(t, tenant.Audit(), 1)
	if _, err := audit.Head(t.Context(), tenant.Audit(), nil); !errors.Is(err, assay.ErrDamaged) {
		t.Fatal("Head without the last checkpoint signed what was published before")
	}
	size, err := tenant.Audit().Size(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	root, err := audit.RootAt(t.Context(), tenant.Audit(), size)
	if err != nil {
		t.Fatal(err)
	}
	forged := audit.Checkpoint{Origin: o, Size: size, Root: root}
	stolen, err := audit.Sign(forged, a)
	if err != nil {
		t.Fatal(err)
	}
	if r := verify(t, tenant.Audit(), append(notes, stolen.Note), a.Public(o)); len(r.Findings) != 1 {
		t.Errorf("a checkpoint of the key that was replaced: %+v", r.Findings)
	}
	lost := authority(tenant, c)
	lost.Lost = "the disk broke"
	sign(lost)
	if r := verify(t, tenant.Audit(), notes, a.Public(o)); len(r.Findings) != 1 {
		t.Errorf("a key that the one before did not sign was accepted: %+v", r.Findings)
	}
	if r := verify(t, tenant.Audit(), notes, a.Public(o), c.Public(o)); len(r.Findings) > 0 || len(r.Checkpoints) != 4 {
		t.Errorf("with the new key: %+v", r.Findings)
	}
}

func TestKeyText(t *testing.T) {
	k := newKey(t)
	again, err := audit.ParseKey(k.Secret())
	if err != nil || again.Public("o") != k.Public("o") {
		t.Errorf("ParseKey of its text: %v", err)
	}
	secret := strings.Fields(k.Secret())[1]
	for _, text := range []string{"", "x", "ASSAY-AUDIT-KEY-1 ", k.Secret() + "x", strings.ToLower(k.Secret()), "ASSAY-AUDIT-KEY-1 " + secret[:40]} {
		if _, err := audit.ParseKey(text); !errors.Is(err, assay.ErrInvalid) || strings.Contains(err.Error(), secret[:40]) {
			t.Errorf("ParseKey(%q): %v", text, err)
		}
	}
	if text := fmt.Sprintf("%v %+v %#v %s", k, k, k, k); strings.Contains(text, secret) || strings.Contains(text, fmt.Sprint([]byte(secret))) {
		t.Errorf("printed: %s", text)
	}
	v, err := note.NewVerifier(k.Public("o"))
	if err != nil || v.Name() != "o" {
		t.Errorf("NewVerifier: %v", err)
	}
}

func TestParseCheckpoint(t *testing.T) {
	root := base64.StdEncoding.EncodeToString(make([]byte, 32))
	good := "o\n12\n" + root + "\n"
	if c, err := audit.ParseCheckpoint(good); err != nil || c.Text() != good {
		t.Errorf("ParseCheckpoint = %+v, %v", c, err)
	}
	for _, text := range []string{
		"", "o\n", "\n12\n" + root + "\n", "o p\n12\n" + root + "\n", "o+p\n12\n" + root + "\n", "o\n012\n" + root + "\n", "o\n-1\n" + root + "\n",
		"o\n12\n" + root, "o\n12\n" + root + "\nextension\n", "o\n12\n" + root[:40] + "\n", "o\n+12\n" + root + "\n",
		"o\n9223372036854775807\n" + root + "\n", "o\n12\n" + root[:42] + "B=\n", strings.Repeat("o", 256) + "\n12\n" + root + "\n",
	} {
		if _, err := audit.ParseCheckpoint(text); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("ParseCheckpoint(%q): %v", text, err)
		}
	}
}

func FuzzCheckpoints(f *testing.F) {
	k, err := audit.NewKey()
	if err != nil {
		f.Fatal(err)
	}
	signed, err := audit.Sign(audit.Checkpoint{Origin: "o", Size: 3}, k)
	if err != nil {
		f.Fatal(err)
	}
	v, err := audit.NewVerifier(k.Public("o"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(signed.Note)
	f.Add(append(bytes.Clone(signed.Note), signed.Note...))
	f.Fuzz(func(t *testing.T, data []byte) {
		if s, err := v.Open(data); err == nil && s.Checkpoint != signed.Checkpoint {
			t.Errorf("another checkpoint was accepted: %+v", s)
		}
		notes, err := audit.SplitNotes(data)
		if err != nil {
			return
		}
		again, err := audit.SplitNotes(bytes.Join(notes, []byte("\n")))
		if err != nil || len(again) != len(notes) {
			t.Errorf("%d notes, %d after joining: %v", len(notes), len(again), err)
		}
	})
}

// TestExport verifies an exported log without a store, whole and altered.
func TestExport(t *testing.T) {
	tenant := openTenant(t, t.TempDir())
	k := newKey(t)
	o := origin(t, tenant.Audit())
	appendActs(t, tenant.Audit(), 10)
	if err := tenant.Audit().Erase(t.Context(), 3, store.Act{Reason: "asked for"}); err != nil {
		t.Fatal(err)
	}
	signed := checkpoint(t, authority(tenant, k))
	appendActs(t, tenant.Audit(), 2)
	size, err := tenant.Audit().Size(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, payloads := range []bool{true, false} {
		var out bytes.Buffer
		if err := audit.WriteExport(t.Context(), &out, tenant.Audit(), size, [][]byte{signed.Note}, []string{k.Public(o)}, payloads); err != nil {
			t.Fatal(err)
		}
		r, err := verifyExport(t, out.Bytes(), nil, k.Public(o))
		if err != nil || len(r.Findings) > 0 || r.Covered() != signed.Size || r.Size != size {
			t.Fatalf("payloads %t: %+v, %v", payloads, r, err)
		}
		if has := strings.Contains(out.String(), `"payload":"{`); has != payloads {
			t.Errorf("payloads %t: the file has some: %t", payloads, has)
		}
		lines := strings.SplitAfter(strings.TrimSuffix(out.String(), "\n"), "\n")
		const head = 3
		for name, edited := range map[string][]string{
			"dropped":    append(append([]string{}, lines[:head+4]...), lines[head+5:]...),
			"inserted":   append(append(append([]string{}, lines[:head+4]...), lines[head+4]), lines[head+4:]...),
			"reordered":  append(append(append([]string{}, lines[:head+4]...), lines[head+5], lines[head+4]), lines[head+6:]...),
			"truncated":  lines[:len(lines)-1],
			"cut":        append(append([]string{}, lines[:len(lines)-1]...), lines[len(lines)-1][:20]),
			"flipped":    append(append(append([]string{}, lines[:head+4]...), strings.Replace(lines[head+4], "test.done", "test.gone", 1)), lines[head+5:]...),
			"other root": append([]string{strings.Replace(lines[0], `"root":"`, `"root":"A`, 1)}, lines[1:]...),
		} {
			r, err := verifyExport(t, []byte(strings.Join(edited, "")), nil, k.Public(o))
			if err == nil && len(r.Findings) == 0 {
				t.Errorf("payloads %t: %s: nothing was found", payloads, name)
			}
		}
	}
}

func verifyExport(t testing.TB, data []byte, notes [][]byte, keys ...string) (audit.Report, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log.jsonl")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	x, err := audit.OpenExport(path)
	if err != nil {
		return audit.Report{}, err
	}
	return x.Verify(t.Context(), notes, keys)
}

func FuzzExport(f *testing.F) {
	tenant := openTenant(f, f.TempDir())
	appendActs(f, tenant.Audit(), 3)
	var out bytes.Buffer
	if err := audit.WriteExport(f.Context(), &out, tenant.Audit(), 3, nil, nil, true); err != nil {
		f.Fatal(err)
	}
	f.Add(out.Bytes())
	path := filepath.Join(f.TempDir(), "log.jsonl")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		x, err := audit.OpenExport(path)
		if err != nil {
			return
		}
		if _, err := x.Verify(t.Context(), nil, nil); err != nil {
			t.Errorf("Verify: %v", err)
		}
	})
}

// A testWitness is a witness of C2SP tlog-witness, written on the libraries of the transparency-dev
// project.
type testWitness struct {
	signer  note.Signer
	origin  string
	logKeys note.Verifiers

	mu   sync.Mutex
	last *f_log.Checkpoint
}

func (w *testWitness) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/w/add-checkpoint" || r.Method != http.MethodPost {
		http.Error(rw, "no such page", http.StatusNotFound)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	code, contentType, answer := w.add(body)
	if contentType != "" {
		rw.Header().Set("Content-Type", contentType)
	}
	rw.WriteHeader(code)
	io.WriteString(rw, answer)
}

func (w *testWitness) add(body []byte) (code int, contentType, answer string) {
	head, signed, ok := bytes.Cut(body, []byte("\n\n"))
	lines := strings.Split(string(head), "\n")
	oldText, isOld := strings.CutPrefix(lines[0], "old ")
	old, err := strconv.ParseUint(oldText, 10, 63)
	if !ok || !isOld || err != nil || len(lines) > 64 {
		return http.StatusBadRequest, "", "no request"
	}
	var hashes [][]byte
	for _, line := range lines[1:] {
		h, err := base64.StdEncoding.Strict().DecodeString(line)
		if err != nil || len(h) != 32 {
			return http.StatusBadRequest, "", "no hash"
		}
		hashes = append(hashes, h)
	}
	var c f_log.Checkpoint
	if _, err := c.Unmarshal(signed); err != nil || c.Origin != w.origin {
		return http.StatusNotFound, "", "unknown log"
	}
	n, err := note.Open(signed, w.logKeys)
	if err != nil {
		return http.StatusForbidden, "", err.Error()
	}
	if old > c.Size {
		return http.StatusBadRequest, "", "old size"
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	last := f_log.Checkpoint{}
	if w.last != nil {
		last = *w.last
	}
	if old != last.Size {
		return http.StatusConflict, "text/x.tlog.size", fmt.Sprintf("%d\n", last.Size)
	}
	if old == c.Size && !bytes.Equal(last.Hash, c.Hash) {
		return http.StatusConflict, "", "another root"
	}
	if old > 0 {
		err = proof.VerifyConsistency(rfc6962.DefaultHasher, old, c.Size, hashes, last.Hash, c.Hash)
	} else if len(hashes) > 0 {
		err = errors.New("a proof from nothing")
	}
	if err != nil {
		return http.StatusUnprocessableEntity, "", err.Error()
	}
	cosigned, err := note.Sign(&note.Note{Text: n.Text}, w.signer)
	if err != nil {
		return http.StatusInternalServerError, "", err.Error()
	}
	w.last = &c
	_, line, _ := strings.Cut(string(cosigned), "\n\n")
	return http.StatusOK, "", "— example.org/stranger AAAAAAAA\n" + line
}

// TestPrivateKeyAsVerifier gives a private key where a public one belongs: its text is in no error.
func TestPrivateKeyAsVerifier(t *testing.T) {
	k, err := audit.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	secret := strings.TrimPrefix(strings.TrimSpace(k.Secret()), "ASSAY-AUDIT-KEY-1 ")
	for _, text := range []string{k.Secret(), secret, "x+12345678+" + secret, strings.ToLower(k.Secret())} {
		_, verifier := audit.NewVerifier(text)
		_, witness := audit.NewWitness("https://witness.example", text, nil)
		for _, err := range []error{verifier, witness} {
			if !errors.Is(err, assay.ErrInvalid) || strings.Contains(strings.ToLower(err.Error()), strings.ToLower(secret)) {
				t.Errorf("error %v", err)
			}
		}
	}
}

// startWitness serves a witness over HTTPS and returns a client for it and its verifier key.
func startWitness(t testing.TB, w *testWitness) (url, key string, client *http.Client) {
	t.Helper()
	skey, vkey, err := note.GenerateKey(nil, "example.org/w1")
	if err != nil {
		t.Fatal(err)
	}
	if w.signer, err = f_note.NewSignerForCosignatureV1(skey); err != nil {
		t.Fatal(err)
	}
	if key, err = f_note.VKeyToCosignatureV1(vkey); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(w)
	t.Cleanup(server.Close)
	return server.URL + "/w/", key, server.Client()
}

// TestWitness has checkpoints cosigned and refused.
func TestWitness(t *testing.T) {
	dir := t.TempDir()
	tenant := openTenant(t, dir)
	k, o := newKey(t), origin(t, tenant.Audit())
	logKey, err := note.NewVerifier(k.Public(o))
	if err != nil {
		t.Fatal(err)
	}
	w := &testWitness{origin: o, logKeys: note.VerifierList(logKey)}
	url, key, client := startWitness(t, w)
	witness, err := audit.NewWitness(url, key, client)
	if err != nil {
		t.Fatal(err)
	}
	v, err := f_note.NewVerifierForCosignatureV1(key)
	if err != nil {
		t.Fatal(err)
	}
	x := authority(tenant, k)
	for _, n := range []int{1, 4, 0, 9} {
		appendActs(t, tenant.Audit(), n)
		signed, err := x.Cosign(t.Context(), checkpoint(t, x), witness)
		if err != nil {
			t.Fatal(err)
		}
		c, _, opened, err := f_log.ParseCheckpoint(signed.Note, o, logKey, v)
		if err != nil || int64(c.Size) != signed.Size || len(opened.Sigs) != 2 {
			t.Fatalf("the cosigned checkpoint:\n%s\n%v", signed.Note, err)
		}
	}
	notes, err := audit.Published(t.Context(), tenant.Registry())
	if err != nil || len(notes) != 3 || strings.Count(string(bytes.Join(notes, nil)), "— example.org/w1 ") != 3 {
		t.Errorf("kept: %d, %v", len(notes), err)
	}
	if r := verify(t, tenant.Audit(), notes, k.Public(o)); len(r.Findings) > 0 {
		t.Errorf("report: %v", r.Findings)
	}
	signed := checkpoint(t, x)

	w.last.Size += 100 // it has seen more: a rollback
	if _, err := witness.Add(t.Context(), tenant.Audit(), signed, 0); !errors.Is(err, assay.ErrDamaged) {
		t.Errorf("the witness has seen more: %v", err)
	}
	w.last.Size = 2 // of another history
	if _, err := witness.Add(t.Context(), tenant.Audit(), signed, 0); !errors.Is(err, assay.ErrDamaged) {
		t.Errorf("the witness has seen another log: %v", err)
	}
	w.origin = "elsewhere"
	if _, err := witness.Add(t.Context(), tenant.Audit(), signed, 0); !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("the witness does not know the log: %v", err)
	}
	w.origin, w.logKeys = o, note.VerifierList()
	if _, err := witness.Add(t.Context(), tenant.Audit(), signed, 0); !errors.Is(err, assay.ErrForbidden) {
		t.Errorf("the witness does not know the key: %v", err)
	}
	_, foreign, err := note.GenerateKey(nil, "example.org/w1")
	if err != nil {
		t.Fatal(err)
	}
	w.logKeys, w.last = note.VerifierList(logKey), nil
	other, err := audit.NewWitness(url, foreign, client)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Add(t.Context(), tenant.Audit(), signed, 0); !errors.Is(err, assay.ErrDamaged) {
		t.Errorf("a cosignature of another key: %v", err)
	}
	if _, err := audit.NewWitness("http://witness.example", key, nil); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("a witness without TLS: %v", err)
	}
}

// TestSeveralWriters appends and signs from several goroutines with their own handles.
func TestSeveralWriters(t *testing.T) {
	dir := t.TempDir()
	k := newKey(t)
	openTenant(t, dir)
	var mu sync.Mutex
	var notes [][]byte
	var wait sync.WaitGroup
	for range 4 {
		tenant := openTenant(t, dir)
		wait.Go(func() {
			for range 5 {
				if err := tenant.Audit().Append(context.Background(), store.Act{Kind: "test.done"}); err != nil {
					t.Error(err)
				}
				s, err := authority(tenant, k).Checkpoint(context.Background())
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				notes = append(notes, s.Note)
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	tenant := openTenant(t, dir)
	if r := verify(t, tenant.Audit(), notes, k.Public(origin(t, tenant.Audit()))); len(r.Findings) > 0 || len(r.Checkpoints) == 0 {
		t.Errorf("%d of %d checkpoints: %v", len(r.Checkpoints), len(notes), r.Findings)
	}
}

// TestHeadRefuses alters the store's hashes and headers and expects that nothing is signed.
func TestHeadRefuses(t *testing.T) {
	tenant := openTenant(t, t.TempDir())
	appendActs(t, tenant.Audit(), 8)
	at4 := audit.Checkpoint{Origin: origin(t, tenant.Audit()), Size: 4}
	var err error
	if at4.Root, err = audit.RootAt(t.Context(), tenant.Audit(), 4); err != nil {
		t.Fatal(err)
	}
	if _, err := audit.Head(t.Context(), tenant.Audit(), &at4); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []audit.Checkpoint{
		{Origin: at4.Origin, Size: 4}, {Origin: at4.Origin, Size: 9, Root: at4.Root}, {Origin: "elsewhere", Size: 4, Root: at4.Root},
	} {
		if _, err := audit.Head(t.Context(), tenant.Audit(), &bad); !errors.Is(err, assay.ErrDamaged) {
			t.Errorf("Head after %+v: %v", bad, err)
		}
	}
}
