package local_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/role/local"
)

func TestGradeRetrieval(t *testing.T) {
	hit := func(text string, relevance float64) assay.Hit {
		return assay.Hit{Text: text, Scores: assay.Scores{Relevance: relevance}}
	}
	tests := []struct {
		name string
		hit  assay.Hit
		want role.Relevance
	}{
		{"answers", hit("ReadTimeout limits how long a server waits.", 0.7), role.Relevant},
		{"certain, in other words", hit("A deadline for requests.", 0.9), role.Relevant},
		{"likely, of another name", hit("WriteTimeout limits how long a server waits.", 0.6), role.PartlyRelevant},
		{"its words, not likely", hit("ReadTimeout limits the server.", 0.3), role.PartlyRelevant},
		{"hardly a word, not likely", hit("Bananas are yellow.", 0.3), role.NotRelevant},
		{"its words, but elsewhere", hit("ReadTimeout limits the server.", 0.05), role.NotRelevant},
		{"nothing", assay.Hit{}, role.NotRelevant},
	}
	var hits []assay.Hit
	for _, tt := range tests {
		hits = append(hits, tt.hit)
	}
	out, err := local.RetrievalGrader{}.GradeRetrieval(context.Background(), nil, "What does ReadTimeout limit on the server?", hits)
	if err != nil {
		t.Fatal(err)
	}
	for i, tt := range tests {
		if out.Grades[i] != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, out.Grades[i], tt.want)
		}
	}
	if out, err := (local.RetrievalGrader{}).GradeRetrieval(context.Background(), nil, "", nil); err != nil || len(out.Grades) != 0 {
		t.Errorf("no hits: %v, %v", out, err)
	}
}

func TestGradeSupport(t *testing.T) {
	evidence := []assay.Evidence{
		{Number: 1, Hit: assay.Hit{Text: "Shutdown closes all open listeners first. It then waits for 30 seconds at most."}},
		{Number: 2, Hit: assay.Hit{Text: "Bananas are yellow."}},
	}
	tests := []struct {
		text  string
		cites []int
		want  role.Support
	}{
		{"Shutdown closes all open listeners first.", []int{1}, role.FullySupported},
		{"Shutdown closes all open listeners first.", []int{2}, role.NotSupported},
		{"Shutdown closes all open listeners first.", []int{2, 1}, role.FullySupported},
		{"Shutdown closes all open listeners first.", nil, role.NotSupported},
		{"Shutdown closes all open listeners first.", []int{7}, role.NotSupported},
		{"Shutdown closes all open listeners first. It paints the windows of Paris.", []int{1}, role.PartlySupported},
		{"It then waits for 90 seconds at most.", []int{1}, role.NotSupported},
		{"Shutdown does not close open listeners first.", []int{1}, role.NotSupported},
		{"First, open listeners are quickly closed by Shutdown.", []int{1}, role.PartlySupported},
		{"…", []int{1}, role.NotSupported},
	}
	in := role.DraftInput{Reading: role.Reading{Evidence: evidence}}
	var want []role.Support
	for _, tt := range tests {
		in.Draft.Statements = append(in.Draft.Statements, role.Statement{Text: tt.text, Evidence: tt.cites})
		want = append(want, tt.want)
	}
	out, err := local.SupportGrader{}.GradeSupport(context.Background(), nil, in)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, out.Grades); diff != "" {
		t.Errorf("grades (-want +got):\n%s", diff)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := (local.SupportGrader{}).GradeSupport(ctx, nil, in); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
	if _, err := (local.RetrievalGrader{}).GradeRetrieval(ctx, nil, "x", []assay.Hit{{}}); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
}
