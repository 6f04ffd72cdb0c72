package answers_test

import (
	"context"
	"go/build"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/eval/answers"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/embedded"
)

// inBinary provides the embedded encoder to an engine.
type inBinary struct{}

func (inBinary) Default() string { return embedded.Model }

func (inBinary) Open(context.Context, string) (llm.Embedder, error) { return embedded.Open() }

// TestGoldenAnswers asks the golden questions about documents that come with Go and checks the
// counts against the minimum for each file. It uses lexical search only. With ASSAY_LONG it also
// embeds all passages, which takes minutes.
func TestGoldenAnswers(t *testing.T) {
	tests := []struct {
		golden         string
		docs           []string // below GOROOT
		right, refused int      // minimum counts
	}{
		{"godoc.jsonl", []string{"doc"}, 44, 10},
		{"nethttp.jsonl", []string{"src/net/http"}, 20, 8},
		{"ostime.jsonl", []string{"src/os", "src/time"}, 16, 7},
		{"databasesql.jsonl", []string{"src/database/sql"}, 15, 8},
	}
	for _, tt := range tests {
		t.Run(tt.golden, func(t *testing.T) {
			var docs []string
			for _, d := range tt.docs {
				d = filepath.Join(build.Default.GOROOT, filepath.FromSlash(d))
				if _, err := os.Stat(d); err != nil {
					t.Skipf("this Go installation has no %s", d)
				}
				docs = append(docs, d)
			}
			set, err := testset.ReadDataset(filepath.Join("..", "testdata", tt.golden))
			if err != nil {
				t.Fatal(err)
			}
			ctx := context.Background()
			config := engine.Config{Dir: t.TempDir()}
			long := os.Getenv("ASSAY_LONG") != ""
			if long {
				config.Encoders = inBinary{}
			}
			e, err := engine.Open(ctx, config)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			if _, err := e.Ingest(ctx, engine.IngestRequest{Paths: docs, Wait: long}); err != nil {
				t.Fatal(err)
			}
			// A slow machine may take longer for a question than its time limit, which loses it.
			report := evaluated(t, e, set, engine.Request{Local: true, Budget: assay.Budget{Wall: 10 * time.Minute}})
			for _, o := range report.Outcomes {
				if !o.Right {
					t.Logf("%s: %s: %s\n  want %v\n  cited %q\n  %s", o.Lost, o.Answer.Status, o.Question, o.Gold, answers.CitedSections(o), o.Answer.Text)
				}
			}
			n := answers.CountGolden(report)
			t.Logf("%d of %d right (%d with the first statement), %d of %d refused", n.Right, n.Answerable, n.RightFirst, n.Refused, n.Unanswerable)
			if !strings.HasPrefix(runtime.Version(), "go1.26") {
				t.Skipf("the figures are of Go 1.26's documents, these are of %s", runtime.Version())
			}
			if n.Right < tt.right || n.Refused < tt.refused {
				t.Errorf("%d right and %d refused, want %d and %d or more", n.Right, n.Refused, tt.right, tt.refused)
			}
		})
	}
}

// evaluated asks the questions of a set and returns the summary of the only system.
func evaluated(t *testing.T, e *engine.Engine, set testset.Dataset, req engine.Request) answers.System {
	t.Helper()
	folder, err := answers.OpenFolder(t.Context(), t.TempDir(), answers.Identity{Set: set.Name, Hash: set.Hash})
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	opts := answers.Options{Contenders: []answers.Contender{{Name: "it", Request: req}}, Principal: assay.Local()}
	if err := answers.AskAll(t.Context(), e, set, folder, opts); err != nil {
		t.Fatal(err)
	}
	report, err := answers.Summarise(t.Context(), set, folder, answers.SummaryOptions{Systems: []string{"it"}, Outcomes: true})
	if err != nil {
		t.Fatal(err)
	}
	return report.Systems[0]
}
