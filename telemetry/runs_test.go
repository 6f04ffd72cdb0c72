package telemetry

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/prototext"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

const (
	question = "Who approves travel to a customer, and how many days of leave may be carried over?"
	secret   = "zyxomma"
)

// corpus writes a few documents and returns their folder. Each holds the word secret.
func corpus(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for name, body := range map[string]string{
		"travel.md": "# Travel\n\nTravel to a customer is approved by the head of the department. Ask " + secret + " at the front desk.\n",
		"leave.md":  "# Leave\n\nTen days of leave may be carried over to the next year. " + secret + " keeps the list.\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// open returns an engine on the corpus that tel observes.
func open(t testing.TB, tel engine.Observer, change func(*engine.Config)) *engine.Engine {
	t.Helper()
	c := engine.Config{Dir: t.TempDir(), NoBackground: true, NoCache: true, Observer: tel}
	if change != nil {
		change(&c)
	}
	e, err := engine.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := e.Ingest(t.Context(), engine.IngestRequest{Paths: []string{corpus(t)}}); err != nil {
		t.Fatal(err)
	}
	return e
}

// A model replies with text that is of no use to any role, so that the local ones stand in.
type model struct{ name string }

func (m model) Model() string    { return m.name }
func (m model) Facts() llm.Facts { return llm.Facts{Window: 100_000} }

func (m model) Generate(_ context.Context, req llm.Request, stream func(llm.Delta)) (llm.Response, error) {
	if stream != nil {
		stream(llm.Delta{Text: "of no use"})
	}
	return llm.Response{
		Text: "of no use", Finish: llm.FinishStop, Served: "served-1", Cached: 3,
		Usage: assay.Usage{Calls: 1, InputTokens: req.InputTokens(), OutputTokens: 3, CostMicros: 5},
	}, nil
}

func withModel(c *engine.Config) {
	m := model{"openai/test-1"}
	c.Models.Roles = map[string]llm.Model{role.GeneratorRole: m, role.GraderRole: m, role.PlannerRole: m}
	c.Models.LocalVerifier = true
}

// TestSteps checks, for runs of several strategies, that each step of the journal has exactly one
// span with the step's times, nested by its path.
func TestSteps(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		strategy string
		change   func(*engine.Config)
	}{
		{"static", nil}, {"auto", nil}, {"corrective", nil}, {"fusion", nil}, {"multihop", nil}, {"react", nil}, {"adaptive", nil}, {"reflect", nil},
		{"static", withModel}, {"corrective", withModel},
	} {
		t.Run(fmt.Sprintf("%s models=%t", c.strategy, c.change != nil), func(t *testing.T) {
			t.Parallel()
			to := newCollector(t)
			tel, end := newTelemetry(t, to.config())
			e := open(t, tel, c.change)
			a, err := e.Answer(t.Context(), assay.Local(), engine.Request{Question: question, Strategy: c.strategy})
			if err != nil {
				t.Fatal(err)
			}
			if err := end(); err != nil {
				t.Fatal(err)
			}
			_, steps, err := e.Run(t.Context(), assay.Local(), a.Run)
			if err != nil {
				t.Fatal(err)
			}
			checkSpans(t, to.spans, a, steps)
		})
	}
}

func checkSpans(t *testing.T, spans []*tracepb.Span, a assay.Answer, steps []engine.Step) {
	t.Helper()
	byPath, byID, scopes := map[string]*tracepb.Span{}, map[string]*tracepb.Span{}, map[string]*tracepb.Span{}
	var root *tracepb.Span
	for _, s := range spans {
		byID[string(s.SpanId)] = s
		switch path, scope := text(s, attrStepPath), text(s, attrScope); {
		case path != "" && byPath[path] != nil:
			t.Errorf("the step %s has two spans", path)
		case path != "":
			byPath[path] = s
		case scope != "" && scopes[scope] != nil:
			t.Errorf("the scope %s has two spans", scope)
		case scope != "":
			scopes[scope] = s
		case strings.HasPrefix(s.Name, opWorkflow) && root == nil:
			root = s
		default:
			t.Errorf("an unexpected span: %s", s.Name)
		}
	}
	if root == nil {
		t.Fatal("the run has no span")
	}
	if got := text(root, attrConversation); got != a.Run {
		t.Errorf("the run is %q, want %s", got, a.Run)
	}
	if got := text(root, attrStatus); got != string(a.Status) {
		t.Errorf("status %q, want %s", got, a.Status)
	}
	if len(byPath) != len(steps) {
		t.Errorf("%d spans of steps, the journal has %d", len(byPath), len(steps))
	}
	for _, step := range steps {
		s := byPath[step.Path]
		if s == nil {
			t.Errorf("the step %s has no span", step.Path)
			continue
		}
		if got := attributesOf(s)[attrStepOrdinal].GetIntValue(); got != int64(step.Ordinal) {
			t.Errorf("%s: ordinal %d, want %d", step.Path, got, step.Ordinal)
		}
		if got, want := int64(s.StartTimeUnixNano), step.Started.UnixNano(); got != want {
			t.Errorf("%s: started at %d, want %d", step.Path, got, want)
		}
		if got := time.Duration(s.EndTimeUnixNano - s.StartTimeUnixNano); got != step.Elapsed {
			t.Errorf("%s: took %v, want %v", step.Path, got, step.Elapsed)
		}
		if (step.Error != nil) != (s.Status.GetCode() == tracepb.Status_STATUS_CODE_ERROR) {
			t.Errorf("%s: error %v, status %v", step.Path, step.Error, s.Status)
		}
		checkParent(t, step.Path, s, root, byID, byPath, scopes)
	}
	for at, s := range scopes {
		checkParent(t, at, s, root, byID, byPath, scopes)
	}
}

// checkParent checks that the parent of a span is the step or the scope that its path names.
func checkParent(t *testing.T, at string, s, root *tracepb.Span, byID, byPath, scopes map[string]*tracepb.Span) {
	t.Helper()
	want := root
	for i := strings.LastIndexByte(at, '/'); i >= 0; i = strings.LastIndexByte(at[:i], '/') {
		if strings.HasPrefix(path.Base(at[:i]), callScope) {
			continue
		}
		if want = byPath[at[:i]]; want == nil {
			want = scopes[at[:i]]
		}
		break
	}
	if got := byID[string(s.ParentSpanId)]; want == nil || got != want {
		t.Errorf("%s: the parent is %v", at, got.GetName())
	}
	if !bytes.Equal(s.TraceId, root.TraceId) {
		t.Errorf("%s is of another trace", at)
	}
}

// words are words of the question and the documents that no telemetry may hold.
var words = []string{"travel", "customer", "leave", "carried", "department", secret, "of no use", "front desk"}

// TestNoTexts checks that nothing of the question, the documents and the replies is exported, and that
// Texts exports them.
func TestNoTexts(t *testing.T) {
	t.Parallel()
	for _, texts := range []bool{false, true} {
		for _, strategy := range []string{"corrective", "react"} {
			t.Run(fmt.Sprintf("texts=%t %s", texts, strategy), func(t *testing.T) {
				t.Parallel()
				to := newCollector(t)
				c := to.config()
				var logs, lines bytes.Buffer
				c.Texts, c.OpenInference, c.EMF = texts, true, &lines
				var err error
				if c.Logger, err = NewLogger(&logs, "json"); err != nil {
					t.Fatal(err)
				}
				tel, end := newTelemetry(t, c)
				e := open(t, tel, withModel)
				if _, err := e.Answer(t.Context(), assay.Local(), engine.Request{Question: question, Strategy: strategy}); err != nil {
					t.Fatal(err)
				}
				if err := end(); err != nil {
					t.Fatal(err)
				}
				var all strings.Builder
				for _, s := range to.spans {
					all.WriteString(prototext.Format(s))
				}
				for _, word := range words {
					if got := strings.Contains(strings.ToLower(all.String()), word); got && !texts {
						t.Errorf("the spans hold %q", word)
					}
				}
				if texts && !(strings.Contains(all.String(), secret) && strings.Contains(all.String(), question)) {
					t.Error("with Texts, the spans hold neither the question nor a passage")
				}
				for _, m := range to.metrics {
					all.WriteString(prototext.Format(m))
				}
				for _, word := range words {
					rest := logs.String() + lines.String()
					for _, m := range to.metrics {
						rest += prototext.Format(m)
					}
					if strings.Contains(strings.ToLower(rest), word) {
						t.Errorf("logs or metrics hold %q", word)
					}
				}
			})
		}
	}
}

// TestChat checks the attributes of a model call.
func TestChat(t *testing.T) {
	t.Parallel()
	to := newCollector(t)
	tel, end := newTelemetry(t, to.config())
	e := open(t, tel, withModel)
	if _, err := e.Answer(t.Context(), assay.Local(), engine.Request{Question: question, Strategy: "corrective"}); err != nil {
		t.Fatal(err)
	}
	if err := end(); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(to.spans, func(s *tracepb.Span) bool { return s.Name == "chat test-1" })
	if i < 0 {
		t.Fatal("no span of a model call")
	}
	s := to.spans[i]
	got := attributesOf(s)
	for name, want := range map[string]string{
		attrOperation: opChat, attrProvider: "openai", attrRequestModel: "test-1", attrResponseModel: "served-1", attrStepKind: "model",
	} {
		if got[name].GetStringValue() != want {
			t.Errorf("%s = %v, want %s", name, got[name], want)
		}
	}
	if got[attrInputTokens].GetIntValue() == 0 || got[attrOutputTokens].GetIntValue() != 3 || got[attrCachedTokens].GetIntValue() != 3 {
		t.Errorf("tokens %v %v %v", got[attrInputTokens], got[attrOutputTokens], got[attrCachedTokens])
	}
	if s.Kind != tracepb.Span_SPAN_KIND_CLIENT {
		t.Errorf("kind %v", s.Kind)
	}
}
