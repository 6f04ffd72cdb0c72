package governance

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

var update = flag.Bool("update", false, "write the golden files")

var start = time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC) // a Monday

// A made run of the tests.
type made struct {
	id      string
	day     int // after start
	answer  assay.Answer
	shape   string
	calls   []call
	cost    int64
	request string
	broken  error
}

type call struct{ tool, arguments, output string }

func (m made) add(b *Builder) {
	at := start.AddDate(0, 0, m.day)
	a := m.answer
	if a.Status == "" {
		a.Status = assay.Answered
	}
	if m.request == "" {
		m.request = `{}`
	}
	r := assay.Run{ID: m.id, State: assay.RunDone, Created: at, Request: json.RawMessage(m.request), Answer: &a}
	var records []assay.Record
	step := func(path string, kind assay.StepKind, in, out string) {
		records = append(records, assay.Record{
			Run: m.id, Ordinal: len(records), Path: path, Kind: kind, Started: at, Input: json.RawMessage(in), Output: json.RawMessage(out),
		})
	}
	if m.shape != "" {
		step("plan", assay.StepPlan, `"q"`, fmt.Sprintf(`{"shape":%q}`, m.shape))
	}
	for i, c := range m.calls {
		if c.output == "" {
			c.output = `{}`
		}
		step(fmt.Sprintf("use[%d]/%s", i, c.tool), assay.StepTool, fmt.Sprintf(`{"tool":%q,"arguments":%s}`, c.tool, c.arguments), c.output)
	}
	step("end", assay.StepClock, `null`, `1`)
	records[0].Usage.CostMicros = m.cost
	r.Steps = len(records)
	b.Run(r, records, m.broken)
}

func act(b *Builder, sequence int64, day int, later time.Duration, kind, subject, detail string) {
	a := store.Act{Kind: kind, Subject: subject, Actor: assay.Principal{User: "alice@example.com"}, Reason: "the merger"}
	if detail != "" {
		a.Detail = json.RawMessage(detail)
	}
	b.Act(store.LoggedAct{Sequence: sequence, Time: start.AddDate(0, 0, day).Add(later), Act: a})
}

// sample is a builder with something in every section.
func sample(o Options) *Builder {
	b := NewBuilder(o)
	search := call{"search", `{"query":"x"}`, ""}
	for i := range 10 {
		made{id: fmt.Sprintf("r%02d", i), day: i * 5, shape: []string{"single", "chain"}[i%2], cost: int64(1000 * i), calls: []call{search},
			answer: assay.Answer{Strategy: "react", Stop: assay.StopSufficient, Iterations: 1 + i%4, ElapsedMS: int64(i) * 4000}}.add(b)
	}
	made{id: "capped", day: 20, shape: "single", calls: []call{search, {"walk_graph", `{"entities":["a"]}`, ""}},
		answer: assay.Answer{Status: assay.Incomplete, Reason: assay.ReasonUnsupported, Strategy: "react", Stop: assay.StopIterationLimit, Iterations: 12, ElapsedMS: 900,
			Claims: []assay.Claim{{Repaired: true}}}}.add(b)
	made{id: "refused", day: 21, calls: []call{{"shell command <b>", `"{}"`, `{"refused":"no such tool","invalid":true}`}},
		answer: assay.Answer{Strategy: "react", Stop: assay.StopNoProgress, Iterations: 2}}.add(b)
	made{id: "stopped", day: 21, answer: assay.Answer{Status: assay.Incomplete, Strategy: "react", Stop: assay.StopStopped, Iterations: 2}}.add(b)
	made{id: "limited", day: 21, answer: assay.Answer{Status: assay.Incomplete, Strategy: "react", Stop: assay.StopQuota, Iterations: 2}}.add(b)
	b.Run(assay.Run{ID: "erased", State: assay.RunErased, Created: start}, nil, nil)
	made{id: "evaluation", day: 22, request: `{"measuring":true}`, answer: assay.Answer{Iterations: 50}}.add(b)
	made{id: "damaged", day: 23, broken: fmt.Errorf("record 3 is missing: %w", assay.ErrDamaged), answer: assay.Answer{Strategy: "static", Stop: assay.StopSufficient, Iterations: 1}}.add(b)
	act(b, 1, 0, 0, "review.needed", "r00", `{"policies":["all"],"approvals_needed":1}`)
	act(b, 2, 0, time.Hour, "review.claimed", "r00", `{"policies":["all"]}`)
	act(b, 3, 0, time.Hour+2*time.Second, "review.decided", "r00", `{"decision":"approved","outcome":"approved","dwell_ms":2000,"open_ms":1500}`)
	act(b, 4, 5, 0, "review.needed", "r01", "")
	// Two reviewers: the first edits, the second approves the edited text.
	act(b, 5, 5, time.Minute, "review.edited", "r01", `{"decision":"edited","outcome":"pending","dwell_ms":90000,"open_ms":80000}`)
	act(b, 6, 5, time.Hour, "review.decided", "r01", `{"decision":"approved","outcome":"edited","dwell_ms":60000,"open_ms":50000}`)
	act(b, 7, 30, 0, "review.decided", "r06", `{"decision":"rejected","outcome":"rejected","dwell_ms":600000,"open_ms":-1}`)
	act(b, 8, 30, 0, "review.escalated", "r07", "")
	act(b, 9, 30, 0, "review.decided", "r07", `{"decision":"expired","outcome":"expired","dwell_ms":0,"open_ms":0}`)
	act(b, 10, 30, 0, "review.decided", "r08", "") // its payload was erased
	act(b, 11, 31, 0, "canary.alarm", "c1", `{"run":"r05","detail":{"place":"answer"}}`)
	act(b, 12, 31, 0, "egress.refused", "web", `{"detail":{"host":"example.com"}}`)
	act(b, 13, 31, 0, "limit.set", "users", "")
	act(b, 14, 31, 0, "keyring.changed", "k1", "")
	act(b, 15, 31, 0, "policy.set", "high-stakes", "")
	act(b, 16, 31, 0, "checkpoint.published", "1", "")
	act(b, 17, 31, 0, "run.expired", "r20", "")
	act(b, 18, 31, 0, "run.erased", "r21", "")
	b.storeAct(store.LoggedAct{Sequence: 2, Time: start.AddDate(0, 0, 29), Act: store.Act{Kind: "key.created", Subject: "k1"}})
	return b
}

func sampleReport() Report {
	return sample(Options{Tenant: "acme", SessionMicros: 4000, MonthMicros: 100_000, LostRuns: []string{"vanished"}}).Report()
}

func TestFigures(t *testing.T) {
	r := sampleReport()
	for _, test := range []struct {
		name      string
		value     float64
		count, of float64
		state     State
		runs      string
	}{
		{"complete_traces", 15.0 / 17, 15, 17, Alert, "damaged vanished"},
		{"tool_calls", 13, 13, 0, Open, ""},
		{"override_rate", 2.0 / 3, 2, 3, Alert, "r01 r06"},
		{"quick_decisions", 0.5, 2, 4, Alert, "r00 r06"},
		{"reviews_expired", 1, 1, 0, Open, ""},
		{"decisions_erased", 1, 1, 0, Open, ""},
		{"reviews_needed", 2, 2, 0, Open, ""},
		{"escalations", 1, 1, 0, Open, "r07"},
		{"iterations_mean", 42.0 / 15, 42, 15, Met, "capped"},
		{"iterations_p99", 12, 15, 15, Open, "capped"},
		{"cap_hits", 2.0 / 15, 2, 15, Alert, "capped limited"},
		{"session_p95", 36000, 15, 15, Alert, "r06 r07 r08 r09"},
		{"tool_errors", 1.0 / 13, 1, 13, Alert, "refused"},
		{"cost_per_session", 45000.0 / 15, 45000, 15, Met, "r05 r06 r07 r08 r09"},
		{"cost_highest_month", 30000, 30000, 2, Met, ""},
		{"drafts_refused", 1.0 / 15, 1, 15, Open, "capped"},
		{"canary_alarms", 1, 1, 0, Alert, "r05"},
		{"key_changes", 1, 1, 0, Open, ""},
		{"checkpoints", 1, 1, 0, Met, ""},
		{"run_stops", 1, 1, 0, Open, "stopped"},
		{"limits_hit", 1, 1, 0, Open, "limited"},
		{"limit_changes", 1, 1, 0, Open, ""},
		{"deletions", 2, 2, 0, Open, "r20 r21"},
	} {
		f := r.Figure(test.name)
		if round(f.Value) != round(test.value) || f.Count != test.count || f.Of != test.of || f.State != test.state || strings.Join(f.Runs, " ") != test.runs {
			t.Errorf("%s = %v (%v of %v), %s, runs %v; want %v (%v of %v), %s, %s", test.name, f.Value, f.Count, f.Of, f.State, f.Runs, test.value, test.count, test.of, test.state, test.runs)
		}
		if f.Definition == "" || f.Title == "" {
			t.Errorf("%s has no definition or title", test.name)
		}
	}
	if r.Runs != 15 || r.Measuring != 1 || r.Acts != 18 {
		t.Errorf("%d runs, %d measuring, %d acts", r.Runs, r.Measuring, r.Acts)
	}
}

// TestEmpty checks that a report on nothing measures nothing and raises no alert.
func TestEmpty(t *testing.T) {
	r := NewBuilder(Options{}).Report()
	if alerts := r.Alerts(); len(alerts) > 0 {
		t.Errorf("alerts %+v", alerts)
	}
	if f := r.Figure("override_rate"); f.State != NotMeasured {
		t.Errorf("override rate of nothing: %s", f.State)
	}
	if err := HTML(&bytes.Buffer{}, r); err != nil {
		t.Error(err)
	}
}

func TestPeriod(t *testing.T) {
	r := sample(Options{From: start.AddDate(0, 0, 20), To: start.AddDate(0, 0, 31)}).Report()
	if r.Runs != 8 || r.Acts != 4 || r.Measuring != 1 {
		t.Errorf("%d runs, %d acts, %d measuring; want 8, 4, 1", r.Runs, r.Acts, r.Measuring)
	}
	for _, row := range r.Table("tools").Rows {
		if week, _ := row[0].(string); week < "2026-W04" || week > "2026-W06" {
			t.Errorf("tools of week %v", week)
		}
	}
	// The tool is new in its week although the period begins there.
	found := slices.ContainsFunc(r.Table("tool_anomalies").Rows, func(row []any) bool { return row[1] == "walk_graph" && row[2] == "new_tool" })
	if !found {
		t.Errorf("anomalies %v, want the new tool walk_graph", r.Table("tool_anomalies").Rows)
	}
}

// TestAnomalies builds five ordinary weeks and a sixth that differs in one way.
func TestAnomalies(t *testing.T) {
	for _, test := range []struct {
		name  string
		calls []call
		runs  int // of the sixth week
		col   string
		want  string
	}{
		{"the same", []call{{"search", `{"query":"who approves travel"}`, ""}}, 5, "hr", ""},
		{"a new tool", []call{{"compare_documents", `{"aspect":"x"}`, ""}}, 1, "hr", "new_tool"},
		{"a new argument", []call{{"search", `{"query":"who approves travel","filters":"x"}`, ""}}, 5, "hr", "new_argument"},
		{"a long argument", []call{{"search", `{"query":"` + strings.Repeat("long ", 100) + `"}`, ""}}, 5, "hr", "argument_length"},
		{"another collection", []call{{"search", `{"query":"who approves travel"}`, ""}}, 5, "board", "new_collection"},
		{"many calls", []call{{"search", `{"query":"who approves travel"}`, ""}}, 60, "hr", "count"},
		{"a refused call", []call{{"search", `{"query":"who approves travel"}`, `{"refused":"again"}`}}, 5, "hr", "refused_calls"},
	} {
		b := NewBuilder(Options{})
		for w := range 6 {
			calls, runs, collection := []call{{"search", `{"query":"who approves travel"}`, ""}}, 5, "hr"
			if w == 5 {
				calls, runs, collection = test.calls, test.runs, test.col
			}
			for i := range runs {
				made{id: fmt.Sprintf("w%dr%d", w, i), day: 7 * w, calls: calls, request: fmt.Sprintf(`{"collections":[%q]}`, collection)}.add(b)
			}
		}
		var got []string
		for _, row := range b.Report().Table("tool_anomalies").Rows {
			what, _ := row[2].(string)
			got = append(got, what)
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: anomalies %v, want %q", test.name, got, test.want)
		}
	}
}

// TestGolden holds the forms of a report. Run it with -update to write them.
func TestGolden(t *testing.T) {
	r := sampleReport()
	files := map[string]func(*bytes.Buffer) error{
		"report.json": func(b *bytes.Buffer) error { return JSON(b, r) },
		"report.html": func(b *bytes.Buffer) error { return HTML(b, r) },
		"figures.csv": func(b *bytes.Buffer) error { return CSV(b, FiguresTable(r)) },
	}
	for _, table := range r.Tables {
		files[table.Name+".csv"] = func(b *bytes.Buffer) error { return CSV(b, table) }
	}
	for name, write := range files {
		var got bytes.Buffer
		if err := write(&got); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, got.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		for _, hidden := range []string{"alice", "merger", "<b>"} {
			if strings.Contains(got.String(), hidden) {
				t.Errorf("%s shows %q", name, hidden)
			}
		}
		if name == "report.html" && (strings.Contains(got.String(), "<script") || strings.Contains(got.String(), "style=") || strings.Contains(got.String(), "http://")) {
			t.Errorf("the page has a script, an inline style or an address")
		}
	}
}

func TestCSVCell(t *testing.T) {
	for _, test := range []struct {
		cell any
		want string
	}{
		{"=1+1", "'=1+1"}, {" @x", "' @x"}, {-3, "-3"}, {-1.5, "-1.5"}, {[]string{"-a", "b"}, "'-a b"}, {"a\nb", "a b"}, {nil, ""}, {true, "true"},
	} {
		if got := csvCell(test.cell); got != test.want {
			t.Errorf("csvCell(%v) = %q, want %q", test.cell, got, test.want)
		}
	}
}

func TestWeek(t *testing.T) {
	for text, want := range map[string]string{"2026-01-01": "2026-W01", "2027-01-01": "2026-W53", "2026-01-04": "2026-W01", "2026-01-05": "2026-W02"} {
		at, err := time.Parse(time.DateOnly, text)
		if err != nil {
			t.Fatal(err)
		}
		if got := week(at); got != want {
			t.Errorf("week(%s) = %s, want %s", text, got, want)
		}
		if m := monday(at); m.Weekday() != time.Monday || m.After(at) || at.Sub(m) >= 7*24*time.Hour {
			t.Errorf("monday(%s) = %s", text, m)
		}
	}
}

// FuzzBuilder adds acts and calls of any form.
func FuzzBuilder(f *testing.F) {
	f.Add("review.decided", "r1", []byte(`{"decision":"edit"}`), []byte(`{"tool":"search","arguments":{"query":"x"}}`), []byte(`{"refused":"x"}`))
	f.Fuzz(func(t *testing.T, kind, subject string, detail, in, out []byte) {
		b := NewBuilder(Options{})
		b.Act(store.LoggedAct{Time: start, Act: store.Act{Kind: kind, Subject: subject, Detail: detail}})
		r := assay.Run{ID: "r", State: assay.RunDone, Created: start, Request: detail, Answer: &assay.Answer{}}
		b.Run(r, []assay.Record{{Kind: assay.StepTool, Path: "x", Started: start, Input: in, Output: out}, {Kind: assay.StepPlan, Path: "plan", Output: in}}, nil)
		report := b.Report()
		var page bytes.Buffer
		if err := HTML(&page, report); err != nil {
			t.Fatal(err)
		}
		for _, table := range report.Tables {
			if err := CSV(&page, table); err != nil {
				t.Fatal(err)
			}
		}
	})
}
