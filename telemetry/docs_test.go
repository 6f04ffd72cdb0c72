package telemetry

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the tables of docs/telemetry.md")

// spanDocs are the rows of the table of spans, by operation.
var spanDocs = []struct{ op, name, of string }{
	{opWorkflow, "invoke_workflow {strategy}", "a run, or its continuation"},
	{opReview, "review {strategy}", "a reviewer's decision, linked to the run"},
	{opScope, "sub[1], round[0], …", "a scope of the run: from its first step to its last"},
	{opPlan, "plan", "the plan of the searches"},
	{opRetrieval, "retrieval {source}", "a search; the source is the collection, or documents, or web"},
	{opEmbed, "embeddings {model}", "a call of an encoder within a run"},
	{opRerank, "rerank {model}", "a call of a reranker within a run"},
	{opGrade, "grade", "the grade of the evidence, with an event `gen_ai.evaluation.result`"},
	{opRung, "rung {rung}", "a rung of the escalation ladder"},
	{opGenerate, "generate", "a draft"},
	{opChat, "chat {model}", "a call of a language model, with all its attempts"},
	{opTool, "execute_tool {tool}", "a call of a tool"},
	{opVerify, "verify", "the verdicts on claims, each an event `gen_ai.evaluation.result`"},
	{opRead, "read", "the words that are cited"},
	{opReader, "compare {what}", "a comparison of texts by the reader"},
	{opRole, "role {task}", "the work of another role"},
	{opCache, "cache", "the search for an earlier answer"},
	{opHuman, "decide", "the record of a decision"},
	{opClock, "clock", "a reading of the clock"},
}

// TestDocs checks the tables of docs/telemetry.md.
func TestDocs(t *testing.T) {
	known := map[string]bool{}
	for _, d := range spanDocs {
		known[d.op] = true
	}
	for _, op := range slices.Sorted(maps.Values(operations)) {
		if !known[op] {
			t.Errorf("the table of spans lacks the operation %s", op)
		}
	}
	const file = "../docs/telemetry.md"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for name, want := range map[string]string{"spans": spanTable(), "metrics": metricTable()} {
		begin, end := fmt.Sprintf("<!-- %s: go test ./telemetry -run TestDocs -update -->\n", name), fmt.Sprintf("<!-- end of %s -->", name)
		before, rest, ok := strings.Cut(text, begin)
		got, after, ends := strings.Cut(rest, end)
		if !ok || !ends {
			t.Fatalf("%s has no place for the table of %s", file, name)
		}
		if *update {
			text = before + begin + want + end + after
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s, %s (-want +got; -update writes it anew):\n%s", file, name, diff)
		}
	}
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func spanTable() string {
	var b strings.Builder
	b.WriteString("\n| span | is |\n| --- | --- |\n")
	for _, d := range spanDocs {
		fmt.Fprintf(&b, "| `%s` | %s |\n", d.name, d.of)
	}
	return b.String() + "\n"
}

func metricTable() string {
	var b strings.Builder
	b.WriteString("\n| metric | in Prometheus | labels | is |\n| --- | --- | --- | --- |\n")
	for _, m := range metrics {
		labels := "–"
		if len(m.labels) > 0 {
			labels = "`" + strings.Join(m.labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s `%s` | %s | %s |\n", m.name, m.kind, m.prometheus(), labels, m.help)
	}
	return b.String() + "\n"
}

// TestLabels checks that the metrics of real runs have the labels of their definitions.
func TestLabels(t *testing.T) {
	t.Parallel()
	for _, m := range metrics {
		if m.kind == histogram && (len(m.buckets) == 0 || !slices.IsSorted(m.buckets)) {
			t.Errorf("%s has the buckets %v", m.name, m.buckets)
		}
		for _, l := range m.labels {
			for _, personal := range []string{"user", "run", "question", "tenant", "path", "query", "document", "collection"} {
				if l == personal {
					t.Errorf("%s has the label %s", m.name, l)
				}
			}
		}
	}
}
