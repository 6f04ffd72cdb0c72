package governance_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/governance"
	"github.com/assay-rag/assay/internal/ramdisk"
	"github.com/assay-rag/assay/standalone"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/sqlite"
)

func TestMain(m *testing.M) {
	ramdisk.Use()
	m.Run()
}

// TestRealQuestions reports on questions asked of real documents by the local roles.
func TestRealQuestions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e, err := engine.Open(t.Context(), standalone.Config(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, err := e.Ingest(t.Context(), engine.IngestRequest{Paths: []string{filepath.Join("..", "engine", "testdata", "handbook")}}); err != nil {
		t.Fatal(err)
	}
	for _, strategy := range []string{"static", "react", "agent"} {
		for _, q := range []string{"Who approves travel?", "How many days of leave may I carry over, and who approves travel?", "What is the boiling point of tungsten?"} {
			if _, err := e.Answer(t.Context(), assay.Local(), engine.Request{Question: q, Strategy: strategy, Budget: assay.Budget{Wall: 10 * time.Minute}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	r, err := e.GovernanceReport(t.Context(), governance.Options{})
	if err != nil {
		t.Fatal(err)
	}
	complete := r.Figure("complete_traces")
	if r.Tenant != engine.DefaultTenant || r.Runs != 9 || complete.State != governance.Met || complete.Of != 9 || r.Acts < 18 {
		t.Errorf("%d runs and %d acts of %s, traces %+v", r.Runs, r.Acts, r.Tenant, complete)
	}
	if calls := r.Figure("tool_calls"); calls.Value == 0 || len(r.Table("tools").Rows) == 0 || len(r.Table("tool_anomalies").Rows) > 0 {
		t.Errorf("tool calls %+v, anomalies %v", calls, r.Table("tool_anomalies").Rows)
	}
	if claims := r.Figure("claims_dropped"); claims.Of == 0 {
		t.Error("no claims are counted")
	}
	again, err := e.GovernanceReport(t.Context(), governance.Options{})
	if err != nil || !reflect.DeepEqual(r, again) {
		t.Errorf("the second report differs, %v", err)
	}
}

func openTenant(t testing.TB) store.Tenant {
	t.Helper()
	return openTenantIn(t, t.TempDir())
}

func openTenantIn(t testing.TB, dir string) store.Tenant {
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
		if err := tenant.Close(); err != nil {
			t.Error(err)
		}
	})
	return tenant
}

// addRun stores an ended run with as many steps.
func addRun(t testing.TB, tenant store.Tenant, id string, steps int) {
	t.Helper()
	var records []assay.Record
	for i := range steps {
		records = append(records, assay.Record{
			Path: fmt.Sprintf("use[%d]/search", i), Kind: assay.StepTool, Started: time.Now(),
			Input: json.RawMessage(`{"tool":"search","arguments":{"query":"who approves travel"}}`), Output: json.RawMessage(`{}`),
		})
	}
	lease, err := tenant.Runs().Create(t.Context(), assay.Run{ID: id, Principal: assay.Local(), Question: "q", Request: json.RawMessage(`{}`)}, records...)
	if err != nil {
		t.Fatal(err)
	}
	if err := lease.Finish(t.Context(), assay.RunDone, &assay.Answer{Status: assay.Answered, Iterations: 1}, ""); err != nil {
		t.Fatal(err)
	}
	if err := lease.Close(); err != nil {
		t.Fatal(err)
	}
}

// vanish removes a run without the store.
func vanish(t *testing.T, dir, run string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, "tenants", "default", "runs.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, query := range []string{
		`PRAGMA foreign_keys = OFF`, `DELETE FROM records WHERE run = (SELECT number FROM runs WHERE id = ?1)`,
		`DELETE FROM progress WHERE run = (SELECT number FROM runs WHERE id = ?1)`, `DELETE FROM runs WHERE id = ?1`,
	} {
		if _, err := db.ExecContext(t.Context(), query, run); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
}

// TestCollect checks runs that were deleted, have expired, were erased, have not ended, and one that
// is gone although the log has no act about it.
func TestCollect(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tenant := openTenantIn(t, dir)
	for _, id := range []string{"kept", "deleted", "expired", "erased", "vanished"} {
		addRun(t, tenant, id, 3)
	}
	ctx, runs := t.Context(), tenant.Runs()
	for _, err := range []error{
		runs.Delete(ctx, "deleted", store.Act{Kind: store.KindRunDeleted, Reason: "asked for"}),
		runs.Delete(ctx, "expired", store.Act{Kind: store.KindRunExpired}),
		runs.Erase(ctx, "erased", store.Act{Kind: store.KindRunErased, Reason: "asked for"}),
		tenant.Audit().Append(ctx, store.Act{Kind: "canary.alarm", Subject: "c"}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	vanish(t, dir, "vanished")
	lease, err := tenant.Runs().Create(t.Context(), assay.Run{ID: "open", Principal: assay.Local(), Question: "q", Request: json.RawMessage(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Close()
	r, err := governance.Collect(t.Context(), tenant, governance.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if f := r.Figure("complete_traces"); f.Count != 1 || f.Of != 2 || len(f.Runs) != 1 || f.Runs[0] != "vanished" {
		t.Errorf("traces %+v", f)
	}
	if f := r.Figure("unfinished_runs"); f.Value != 1 || len(f.Runs) != 1 || f.Runs[0] != "open" {
		t.Errorf("unfinished %+v", f)
	}
	for name, want := range map[string]float64{"deletions": 3, "canary_alarms": 1, "reviews_needed": 0} {
		if f := r.Figure(name); f.Value != want {
			t.Errorf("%s = %v, want %v", name, f.Value, want)
		}
	}
	past, err := governance.Collect(t.Context(), tenant, governance.Options{To: time.Now().Add(-time.Hour)})
	if err != nil || past.Runs != 0 || past.Acts != 0 || past.Figure("complete_traces").Of != 0 {
		t.Errorf("before the first run: %d runs, %d acts, %v", past.Runs, past.Acts, err)
	}
}

// BenchmarkCollect reports on 100,000 records in 2,000 runs.
func BenchmarkCollect(b *testing.B) {
	tenant := openTenant(b)
	const runs, steps = 2000, 50
	for i := range runs {
		addRun(b, tenant, fmt.Sprintf("run%d", i), steps)
	}
	for b.Loop() {
		r, err := governance.Collect(b.Context(), tenant, governance.Options{})
		if err != nil || r.Figure("tool_calls").Value != runs*steps {
			b.Fatalf("%v calls, %v", r.Figure("tool_calls").Value, err)
		}
	}
	b.ReportAllocs()
}
