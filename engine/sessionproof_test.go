package engine

import (
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/audit"
	"github.com/assay-rag/assay/identity"
)

// publish signs a checkpoint of a tenant's log and keeps it.
func publish(t *testing.T, h *Host, tenant string, key audit.Key) audit.Signed {
	t.Helper()
	log, err := h.store.Tenant(t.Context(), tenant)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	x := audit.Authority{Audit: log.Audit(), Registry: log.Registry(), Actor: assay.Local(), Key: key}
	signed, err := x.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// proofWorld is a host with a run of ann.
func proofWorld(t *testing.T) (h *Host, dir string, ann, aud *Session, id string, key audit.Key) {
	t.Helper()
	dir = t.TempDir()
	h = openHost(t, HostConfig{Config: Config{Dir: dir, NoBackground: true}, Folders: []string{"testdata"}}, "acme", "globex")
	admin := mustSession(t, h, roleGrant("acme", assay.Principal{User: "root"}, identity.Admin))
	folder, err := filepath.Abs("testdata/handbook")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Ingest(t.Context(), IngestRequest{Paths: []string{folder}}); err != nil {
		t.Fatal(err)
	}
	ann = mustSession(t, h, roleGrant("acme", assay.Principal{User: "ann"}, identity.Reader))
	aud = mustSession(t, h, roleGrant("acme", assay.Principal{User: "aud"}, identity.Auditor))
	a, err := ann.Answer(t.Context(), Request{Question: someQuestion})
	if err != nil {
		t.Fatal(err)
	}
	if key, err = audit.NewKey(); err != nil {
		t.Fatal(err)
	}
	return h, dir, ann, aud, a.Run, key
}

// TestCheckProof goes through the states of a proof, of which the last is of a run that was altered.
func TestCheckProof(t *testing.T) {
	t.Parallel()
	h, dir, ann, aud, id, key := proofWorld(t)
	want := func(state ProofState) ProofCheck {
		t.Helper()
		check, err := ann.CheckProof(t.Context(), id)
		if err != nil || check.State != state {
			t.Errorf("%+v, %v; want %s", check, err, state)
		}
		return check
	}
	want(ProofUnpublished)
	signed := publish(t, h, "acme", key)
	check := want(ProofHolds)
	if check.Size != signed.Size || check.Published.IsZero() || len(check.Keys) != 1 || check.Entries == 0 || check.Withheld {
		t.Errorf("%+v", check)
	}
	bob := mustSession(t, h, roleGrant("acme", assay.Principal{User: "bob"}, identity.Reader))
	zed := mustSession(t, h, roleGrant("globex", assay.Principal{User: "zed"}, identity.Admin))
	for user, s := range map[string]*Session{"bob": bob, "zed": zed} {
		if _, err := s.CheckProof(t.Context(), id); !errors.Is(err, assay.ErrNotFound) {
			t.Errorf("%s: %v, want ErrNotFound", user, err)
		}
	}
	if audited, err := aud.AuditCheckProof(t.Context(), id); err != nil || audited.State != ProofHolds {
		t.Errorf("an auditor: %+v, %v", audited, err)
	}
	a, err := ann.Answer(t.Context(), Request{Question: "How long is the notice period?", NoCache: true})
	if err != nil {
		t.Fatal(err)
	}
	if later, err := ann.CheckProof(t.Context(), a.Run); err != nil || later.State != ProofUncovered || later.Size != signed.Size {
		t.Errorf("a later run: %+v, %v; want %s", later, err, ProofUncovered)
	}
	alter(t, dir, `UPDATE runs SET answer = replace(answer, 'head of the department', 'head of the kitchen') WHERE id = '`+id+`'`)
	if check := want(ProofFails); check.Problem == "" {
		t.Error("a proof that fails has no problem")
	}
}

// alter changes the runs of acme behind the program's back.
func alter(t *testing.T, dir, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, "tenants", "acme", "runs.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	changed, err := db.ExecContext(t.Context(), statement)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := changed.RowsAffected(); err != nil || n == 0 {
		t.Fatalf("%d rows changed, %v", n, err)
	}
}

// TestAuditCheckpoints compares published checkpoints, and one that was kept elsewhere, with the log.
func TestAuditCheckpoints(t *testing.T) {
	t.Parallel()
	h, dir, ann, aud, _, key := proofWorld(t)
	if list, size, err := aud.AuditCheckpoints(t.Context()); err != nil || len(list) != 0 || size == 0 {
		t.Fatalf("%+v of %d entries, %v; want none", list, size, err)
	}
	first := publish(t, h, "acme", key)
	if _, err := ann.Answer(t.Context(), Request{Question: someQuestion, NoCache: true}); err != nil {
		t.Fatal(err)
	}
	second := publish(t, h, "acme", key)
	list, size, err := aud.AuditCheckpoints(t.Context())
	if err != nil || len(list) != 2 || list[0].Size != second.Size || list[1].Size != first.Size || size <= second.Size {
		t.Fatalf("%+v of %d entries, %v", list, size, err)
	}
	for _, one := range list {
		if one.Problem != "" || one.Published.IsZero() || len(one.Keys) != 1 {
			t.Errorf("%+v", one)
		}
	}
	if _, _, err := ann.AuditCheckpoints(t.Context()); !errors.Is(err, assay.ErrForbidden) {
		t.Errorf("a reader: %v, want ErrForbidden", err)
	}
	kept, err := aud.AuditCompare(t.Context(), string(first.Note), first.Keys[0])
	if err != nil || kept.Problem != "" || kept.Size != first.Size {
		t.Errorf("a checkpoint that was kept: %+v, %v", kept, err)
	}
	other, err := audit.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := aud.AuditCompare(t.Context(), string(first.Note), other.Public(first.Origin)); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("with another key: %v, want ErrInvalid", err)
	}
	forged := first.Checkpoint
	forged.Size += 1000
	ahead, err := audit.Sign(forged, key)
	if err != nil {
		t.Fatal(err)
	}
	if rolled, err := aud.AuditCompare(t.Context(), string(ahead.Note), ahead.Keys[0]); err != nil || !strings.Contains(rolled.Problem, "has only") {
		t.Errorf("a checkpoint of a longer log: %+v, %v", rolled, err)
	}
	alter(t, dir, `UPDATE acts SET payload = replace(payload, 'root', 'ruth') WHERE payload LIKE '%root%'`)
	if altered, err := aud.AuditCompare(t.Context(), string(first.Note), first.Keys[0]); err != nil || altered.Problem == "" {
		t.Errorf("a log with an altered entry: %+v, %v", altered, err)
	}
	alter(t, dir, `UPDATE tree SET hash = zeroblob(32)`)
	list, _, err = aud.AuditCheckpoints(t.Context())
	if err != nil || len(list) != 2 || list[0].Problem == "" && list[1].Problem == "" {
		t.Errorf("an altered log: %+v, %v", list, err)
	}
}

// TestAuditSearch filters the audit log and reads it in parts.
func TestAuditSearch(t *testing.T) {
	t.Parallel()
	_, _, ann, aud, id, _ := proofWorld(t)
	find := func(f AuditFilter) []AuditEntry {
		t.Helper()
		var all []AuditEntry
		for {
			found, next, err := aud.AuditSearch(t.Context(), f)
			if err != nil {
				t.Fatal(err)
			}
			if len(found) > f.Limit {
				t.Fatalf("%d entries, at most %d", len(found), f.Limit)
			}
			if all = append(all, found...); next == 0 {
				return all
			}
			f.Before = next
		}
	}
	every, err := aud.AuditLog(t.Context(), 0, MaxAuditEntries)
	if err != nil {
		t.Fatal(err)
	}
	if all := find(AuditFilter{Limit: 2, Records: true}); len(all) != len(every) || all[0].Sequence != every[len(every)-1].Sequence {
		t.Errorf("%d entries in parts, want %d, newest first", len(all), len(every))
	}
	for _, test := range []struct {
		name   string
		filter AuditFilter
		want   func(AuditEntry) bool
	}{
		{"acts", AuditFilter{}, func(e AuditEntry) bool { return e.Kind != "record" }},
		{"steps", AuditFilter{Kind: "record"}, func(e AuditEntry) bool { return e.Kind == "record" }},
		{"a kind", AuditFilter{Kind: "run.begun"}, func(e AuditEntry) bool { return e.Kind == "run.begun" }},
		{"kinds", AuditFilter{Kind: "run."}, func(e AuditEntry) bool { return strings.HasPrefix(e.Kind, "run.") }},
		{"a user", AuditFilter{User: "ann"}, func(e AuditEntry) bool { return e.Actor != nil && e.Actor.User == "ann" }},
		{"an object", AuditFilter{Subject: id}, func(e AuditEntry) bool { return e.Kind != "record" && e.Subject == id }},
		{"a time", AuditFilter{Until: every[1].Time}, func(e AuditEntry) bool { return e.Kind != "record" && e.Time.Before(every[1].Time) }},
	} {
		want := 0
		for _, e := range every {
			if test.want(e) {
				want++
			}
		}
		test.filter.Limit = 3
		got := find(test.filter)
		for _, e := range got {
			if !test.want(e) {
				t.Errorf("%s: %+v", test.name, e)
			}
		}
		if len(got) != want {
			t.Errorf("%s: %d entries, want %d", test.name, len(got), want)
		}
	}
	if _, _, err := ann.AuditSearch(t.Context(), AuditFilter{Limit: 1}); !errors.Is(err, assay.ErrForbidden) {
		t.Errorf("a reader: %v, want ErrForbidden", err)
	}
	if _, _, err := aud.AuditSearch(t.Context(), AuditFilter{}); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("no limit: %v, want ErrInvalid", err)
	}
}
