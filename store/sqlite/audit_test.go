package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/journal"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/internal/relational"
	"github.com/assay-rag/assay/store/storetest"
)

// BenchmarkAppendRecord measures a durable append of a record with its leaf.
func BenchmarkAppendRecord(b *testing.B) {
	s, err := Open(b.Context(), b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	tenant, err := created(s, b.Context(), "acme")
	if err != nil {
		b.Fatal(err)
	}
	defer tenant.Close()
	lease, err := tenant.Runs().Create(b.Context(), assay.Run{ID: "run", Principal: assay.Local(), Question: "q"})
	if err != nil {
		b.Fatal(err)
	}
	defer lease.Close()
	for i := 0; b.Loop(); i++ {
		rec := assay.Record{Path: "step" + time.Duration(i).String(), Kind: assay.StepSearch, Input: []byte(`{"text":"a question"}`), Output: []byte(`[]`)}
		if _, err := lease.Append(b.Context(), rec); err != nil {
			b.Fatal(err)
		}
	}
}

// TestContentActs changes content and finds each change once in the audit log, also after the
// tenant was opened again.
func TestContentActs(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		tenant, err := created(s, t.Context(), "acme")
		if err != nil {
			t.Fatal(err)
		}
		w, err := tenant.Writer(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		text := "round" + string(rune('a'+round))
		_, err = w.Put(t.Context(), store.Entry{Document: assay.Document{
			ID: assay.DocumentID("c", "u"), Collection: "c", URI: "u", Version: assay.DocumentVersion(text, nil, "x"), Text: text,
		}})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if size, err := tenant.Audit().Size(t.Context()); err != nil || size != int64(round+2) /* and that of the collection */ {
			t.Errorf("round %d: %d entries, %v", round, size, err)
		}
		if err := tenant.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// childActs appends acts, items and runs until it has made as many of each as it was told.
func childActs(ctx context.Context, dir, name, count string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	s, err := Open(ctx, dir)
	if err != nil {
		return err
	}
	t, err := created(s, ctx, "crash")
	if err != nil {
		return err
	}
	for i := range n {
		id := name + strconv.Itoa(i)
		err := errors.Join(
			t.Audit().Append(ctx, store.Act{Kind: "test.done", Subject: id}),
			t.Registry().Set(ctx, store.RegistryItem{Kind: "item", Name: id, Value: json.RawMessage(`1`)}, store.Act{Kind: "item.set", Subject: id}))
		if err != nil {
			return err
		}
		l, err := t.Runs().Create(ctx, assay.Run{ID: id, Question: "?"}, crashRecord(0))
		if err != nil {
			return err
		}
		if err := errors.Join(l.Finish(ctx, assay.RunDone, &assay.Answer{Text: id}, ""), l.Close()); err != nil {
			return err
		}
	}
	return t.Close()
}

// TestManyProcesses appends to one log from several processes at once.
func TestManyProcesses(t *testing.T) {
	const processes, each = 4, 15
	dir := filepath.Join(t.TempDir(), "data")
	tenant := openCrash(t, dir)
	defer tenant.Close()
	var children []*exec.Cmd
	for i := range processes {
		cmd := childCommand("acts", dir, string(rune('a'+i)), strconv.Itoa(each))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		children = append(children, cmd)
	}
	for _, cmd := range children {
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	const entries = processes * each * 5 // act, item, begun, record, ended
	if size, err := tenant.Audit().Size(t.Context()); err != nil || size != entries {
		t.Errorf("Size = %d, %v; want %d", size, err, entries)
	}
	checkIntegrity(t, tenant)
	var leaves []tlog.Hash
	for e, err := range tenant.Audit().Entries(t.Context(), 0, entries) {
		if err != nil {
			t.Fatal(err)
		}
		leaves = append(leaves, e.Leaf)
	}
	storetest.CheckTree(t, tenant.Audit(), leaves)
}

// childUncollected commits a change of content while runs.db is locked, so that its act cannot reach
// the log, prints the number of acts that wait, and waits to be killed.
func childUncollected(ctx context.Context, dir, number string) error {
	n, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	s, err := Open(ctx, dir)
	if err != nil {
		return err
	}
	t, err := created(s, ctx, "crash")
	if err != nil {
		return err
	}
	w, err := t.Writer(ctx)
	if err != nil {
		return err
	}
	blocker, err := openUpdater(ctx, t.runs)
	if err != nil {
		return err
	}
	if err := blocker.begin(ctx); err != nil {
		return err
	}
	before, err := newestAct(ctx, t)
	if err != nil {
		return err
	}
	go w.Put(ctx, crashEntry(n, 0)) //nolint:errcheck // it is killed
	for {
		now, err := newestAct(ctx, t)
		if err != nil {
			return err
		}
		if now > before {
			fmt.Println(now)
			select {}
		}
		runtime.Gosched()
	}
}

func newestAct(ctx context.Context, t *Tenant) (n int64, err error) {
	err = t.content.Row(ctx, `SELECT COALESCE(MAX(number), 0) FROM waiting_acts`, nil, &n)
	return n, err
}

// TestKillBeforeLog kills a writer after its change of content is durable and before its act is in
// the log. Afterwards the log has each act once.
func TestKillBeforeLog(t *testing.T) {
	c := newCrasher(t, 11)
	rounds := min(crashRounds(), 40)
	for round := range rounds {
		cmd, lines := c.start("uncollected", strconv.Itoa(round+1))
		if !lines.Scan() {
			t.Fatalf("round %d: %v", round, lines.Err())
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // "signal: killed"
		tenant := openCrash(t, c.dir)
		var moved int64
		if err := tenant.runs.Row(t.Context(), `SELECT moved FROM store`, nil, &moved); err != nil {
			t.Fatal(err)
		}
		newest, err := newestAct(t.Context(), tenant)
		if err != nil || newest <= moved {
			t.Errorf("round %d: act %d of %d is in the log already, %v", round, moved, newest, err)
		}
		for range 2 { // the second finds nothing to move
			documents := map[string]int{}
			size, err := tenant.Audit().Size(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for e, err := range tenant.Audit().Entries(t.Context(), 0, size) {
				if err != nil {
					t.Fatal(err)
				}
				a, err := journal.OpenAct(e.Header, e.Payload, e.Salt, e.Leaf)
				if err != nil {
					t.Fatal(err)
				}
				var changed struct {
					Documents []struct{ Document string }
				}
				if a.Kind != store.KindContentChanged {
					continue
				}
				if err := json.Unmarshal(a.Detail, &changed); err != nil {
					t.Fatal(err)
				}
				for _, d := range changed.Documents {
					documents[d.Document]++
				}
			}
			for id, n := range documents {
				if n != 1 {
					t.Errorf("round %d: document %s is in the log %d times", round, id, n)
				}
			}
			if len(documents) != round+1 {
				t.Errorf("round %d: %d documents are in the log", round, len(documents))
			}
		}
		checkIntegrity(t, tenant)
		if err := tenant.Close(); err != nil {
			t.Fatal(err)
		}
		if t.Failed() {
			return
		}
	}
}

// TestContentActsNameNobody checks that acts that cannot be erased hold no URI, title or ACL.
func TestContentActsNameNobody(t *testing.T) {
	h := newHarness(t)
	tenant, err := created(h.Store, t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	defer tenant.Close()
	w, err := tenant.Writer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e := storetest.Entry("docs", "/letters/ann", "Dear Ann")
	e.Document.ACL = assay.ACL{Restricted: true, Allow: []string{"user:ann"}}
	_, err = w.Apply(t.Context(), store.Batch{Put: []store.Entry{e}, Sources: []store.Source{{Collection: "docs", URI: "/letters/ann"}}})
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	size, err := tenant.Audit().Size(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for entry, err := range tenant.Audit().Entries(t.Context(), 0, size) {
		if err != nil {
			t.Fatal(err)
		}
		if text := strings.ToLower(string(entry.Header) + string(entry.Payload)); strings.Contains(text, "ann") {
			t.Errorf("entry %d: %s", entry.Sequence, text)
		}
		if err := tenant.Audit().Erase(t.Context(), entry.Sequence, store.Act{}); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("entry %d, which content is checked against, was erased: %v", entry.Sequence, err)
		}
	}
}

// BenchmarkAppendLeaf measures what the log and its tree add to the transaction of a record: with the
// leaf and the tree, and without.
func BenchmarkAppendLeaf(b *testing.B) {
	for _, tree := range []bool{false, true} {
		b.Run(fmt.Sprintf("tree=%t", tree), func(b *testing.B) {
			s, err := Open(b.Context(), b.TempDir())
			if err != nil {
				b.Fatal(err)
			}
			tenant, err := created(s, b.Context(), "acme")
			if err != nil {
				b.Fatal(err)
			}
			defer tenant.Close()
			u, err := tenant.RunsUpdater(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			ctx, number := b.Context(), int64(0)
			if _, err := tenant.Runs().Create(ctx, assay.Run{ID: "run"}); err != nil {
				b.Fatal(err)
			}
			if err := tenant.runs.Row(ctx, `SELECT number FROM runs`, nil, &number); err != nil {
				b.Fatal(err)
			}
			for i := 1; b.Loop(); i++ {
				err := u.Update(ctx, func(t relational.Tx) error {
					sequence, err := relational.NextSequence(ctx, t)
					if err != nil {
						return err
					}
					rec := assay.Record{Run: "run", Sequence: sequence, Path: "step" + strconv.Itoa(i), Kind: assay.StepSearch, Input: []byte(`{"text":"a question"}`)}
					salt := journal.NewSalt()
					sealed, err := journal.Seal(rec, salt)
					if err != nil {
						return err
					}
					if tree {
						err = relational.AppendLeaf(ctx, t, sequence, sealed.Header, sealed.Leaf)
					} else {
						_, err = t.Exec(ctx, `INSERT INTO log (sequence, header, leaf) VALUES (?, ?, ?)`, sequence, string(sealed.Header), sealed.Leaf[:])
					}
					if err != nil {
						return err
					}
					_, err = t.Exec(ctx, `INSERT INTO records (sequence, run, ordinal, path, salt, payload) VALUES (?, ?, ?, ?, ?, ?)`,
						sequence, number, i, rec.Path, salt, string(sealed.Payload))
					return err
				})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
