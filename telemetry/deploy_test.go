package telemetry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
)

const (
	dashboardFile = "../deploy/grafana/assay.json"
	alertsFile    = "../deploy/prometheus/alerts.yaml"
)

// A dashboard is what Grafana needs of a dashboard, see "Dashboard JSON model" in its documentation.
type dashboard struct {
	UID           string  `json:"uid"`
	Title         string  `json:"title"`
	SchemaVersion int     `json:"schemaVersion"`
	Panels        []panel `json:"panels"`
}

type panel struct {
	ID      int    `json:"id"`
	Type    string `json:"type"`
	Title   string `json:"title"`
	GridPos struct{ H, W, X, Y int }
	Targets []struct {
		RefID        string `json:"refId"`
		Expr         string `json:"expr"`
		LegendFormat string `json:"legendFormat"`
		Datasource   struct{ Type, UID string }
	} `json:"targets"`
}

type alertGroups struct {
	Groups []struct {
		Name  string
		Rules []struct {
			Alert       string
			Expr        string
			For         string
			Labels      map[string]string
			Annotations map[string]string
		}
	}
}

// queries returns the queries of the dashboard and of the alerts, by where they are.
func queries(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	data, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	checkDashboard(t, d)
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			all[fmt.Sprintf("panel %q, %s", p.Title, target.RefID)] = target.Expr
		}
	}
	if data, err = os.ReadFile(alertsFile); err != nil {
		t.Fatal(err)
	}
	var alerts alertGroups
	if err := yaml.UnmarshalWithOptions(data, &alerts, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	for _, g := range alerts.Groups {
		for _, r := range g.Rules {
			all["alert "+r.Alert] = r.Expr
			if r.Annotations["summary"] == "" || r.Annotations["description"] == "" || r.Labels["severity"] == "" || r.For == "" {
				t.Errorf("the alert %s lacks a summary, a description, a severity or a time", r.Alert)
			}
		}
	}
	return all
}

// checkDashboard checks the form of the dashboard.
func checkDashboard(t *testing.T, d dashboard) {
	t.Helper()
	if d.UID == "" || d.Title == "" || d.SchemaVersion < 36 {
		t.Errorf("the dashboard is %q, %q of schema %d", d.UID, d.Title, d.SchemaVersion)
	}
	ids := map[int]bool{}
	for i, p := range d.Panels {
		g := p.GridPos
		if ids[p.ID] || p.ID == 0 || g.W < 1 || g.H < 1 || g.X < 0 || g.X+g.W > 24 {
			t.Errorf("the panel %q has the ID %d and the place %+v", p.Title, p.ID, g)
		}
		ids[p.ID] = true
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("the panel %q has no query", p.Title)
		}
		for _, o := range d.Panels[:i] {
			apart := g.X+g.W <= o.GridPos.X || o.GridPos.X+o.GridPos.W <= g.X || g.Y+g.H <= o.GridPos.Y || o.GridPos.Y+o.GridPos.H <= g.Y
			if !apart {
				t.Errorf("the panels %q and %q overlap", p.Title, o.Title)
			}
		}
		for _, target := range p.Targets {
			if target.Datasource.Type != "prometheus" || target.Datasource.UID != "${datasource}" || target.RefID == "" {
				t.Errorf("the panel %q has a query of another data source: %+v", p.Title, target)
			}
		}
	}
}

var (
	metricNames = regexp.MustCompile(`\b(?:assay|gen_ai_client)_[a-z_]+`)
	selectors   = regexp.MustCompile(`\b((?:assay|gen_ai_client)_[a-z_]+)(?:\{([^}]*)\})?`)
	matchers    = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)\s*"`)
	groupings   = regexp.MustCompile(`(?:by|ignoring) \(([^)]*)\)`)
	suffixes    = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// TestQueries checks that each metric and label that the dashboard or an alert queries is in a scrape
// after real runs and requests.
func TestQueries(t *testing.T) {
	t.Parallel()
	to := newCollector(t)
	tel, _ := newTelemetry(t, to.config())
	var known engine.Config
	withModel(&known)
	tel.Know(known)
	e := open(t, tel, withModel)
	for _, strategy := range []string{"corrective", "react"} {
		for _, err := range e.Ask(t.Context(), assay.Local(), engine.Request{Question: question, Strategy: strategy}) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	tel.Middleware(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	tel.exports.ended("traces", nil)
	text := scrape(t, tel)
	for at, expr := range queries(t) {
		for _, name := range metricNames.FindAllString(expr, -1) {
			if strings.HasPrefix(name, "gen_ai_request") || strings.HasPrefix(name, "gen_ai_operation") {
				continue
			}
			if !strings.Contains(text, "\n"+name+"{") && !strings.Contains(text, "\n"+name+" ") {
				t.Errorf("%s: no scrape has the metric %s", at, name)
			}
		}
		for _, label := range labelsOfQuery(expr) {
			if label != "le" && !hasLabel(expr, label) {
				t.Errorf("%s: no metric of the query has the label %s", at, label)
			}
		}
	}
}

// labelsOfQuery returns the labels that a query names.
func labelsOfQuery(expr string) []string {
	var all []string
	for _, m := range selectors.FindAllStringSubmatch(expr, -1) {
		for _, l := range matchers.FindAllStringSubmatch(m[2], -1) {
			all = append(all, l[1])
		}
	}
	for _, g := range groupings.FindAllStringSubmatch(expr, -1) {
		for l := range strings.SplitSeq(g[1], ",") {
			all = append(all, strings.TrimSpace(l))
		}
	}
	return all
}

// hasLabel reports whether a metric of a query has a label.
func hasLabel(expr, label string) bool {
	for _, name := range metricNames.FindAllString(expr, -1) {
		i := slices.IndexFunc(metrics, func(d metric) bool {
			return d.prometheus() == name || d.prometheus() == suffixes.ReplaceAllString(name, "")
		})
		if i < 0 {
			continue
		}
		for _, l := range metrics[i].labels {
			if strings.ReplaceAll(l, ".", "_") == label {
				return true
			}
		}
	}
	return false
}

// TestPromtool checks the alerts, their tests, a scrape and the queries of the dashboard by promtool,
// whose path is in ASSAY_PROMTOOL: scripts/promtool go test -run Promtool ./telemetry.
func TestPromtool(t *testing.T) {
	t.Parallel()
	tool := os.Getenv("ASSAY_PROMTOOL")
	if tool == "" {
		t.Skip("ASSAY_PROMTOOL does not name promtool: scripts/promtool go test -run Promtool ./telemetry")
	}
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var rules []rule
	for at, expr := range queries(t) {
		if strings.HasPrefix(at, "panel") {
			expr = strings.NewReplacer("$__rate_interval", "5m", "$strategy", "auto").Replace(expr)
			rules = append(rules, rule{fmt.Sprintf("panel:%d", len(rules)), expr})
		}
	}
	panels := filepath.Join(t.TempDir(), "panels.yaml")
	data, err := json.Marshal(map[string]any{"groups": []any{map[string]any{"name": "panels", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(panels, data, 0o600); err != nil {
		t.Fatal(err)
	}
	tel, _ := newTelemetry(t, Config{})
	e := open(t, tel, nil)
	if _, err := e.Answer(t.Context(), assay.Local(), engine.Request{Question: question}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args  []string
		stdin string
	}{
		{[]string{"check", "rules", alertsFile}, ""},
		{[]string{"check", "rules", panels}, ""},
		{[]string{"test", "rules", "../deploy/prometheus/alerts_test.yaml"}, ""},
		{[]string{"check", "metrics"}, scrape(t, tel)},
	} {
		cmd := exec.CommandContext(t.Context(), tool, c.args...)
		cmd.Stdin = strings.NewReader(c.stdin)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Run(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(c.args, " "), err, out.String())
		}
	}
}
