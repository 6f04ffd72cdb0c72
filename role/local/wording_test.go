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

func TestRewrite(t *testing.T) {
	tests := []struct {
		technique role.Technique
		question  string
		want      []string
	}{
		{role.HyDE, "What is the retention period for invoices?", []string{"The retention period for invoices is"}},
		{role.HyDE, "Who's the owner of the gateway?", []string{"The owner of the gateway is"}},
		{role.HyDE, "How long is parental leave?", []string{"Parental leave is long"}},
		{role.HyDE, "How do I shut a server down?", []string{"To shut a server down"}},
		{role.HyDE, "When was Springfield founded?", []string{"Springfield was founded"}},
		{role.HyDE, "When does the office open?", []string{"The office open"}},
		{role.HyDE, "Does a nil channel block?", []string{"A nil channel block"}},
		{role.HyDE, "Who founded Springfield?", []string{"Founded Springfield"}},
		{role.HyDE, "Springfield was founded by Jebediah.", []string{}},
		{role.HyDE, "invoices", []string{}},
		{role.HyDE, "", []string{}},

		{role.StepBack, "How long is the retention period for invoices in Germany in 2023?", []string{"How long is the retention period?"}},
		{role.StepBack, "What happens to open listeners when Shutdown is called twice?", []string{"What happens to open listeners?"}},
		{role.StepBack, "What is a goroutine?", []string{}},
		{role.StepBack, "Who works in Berlin?", []string{}},

		{role.Expand, "What is a goroutine?", []string{"A goroutine is"}},
		{role.Expand, "How is the Electronic Benefit Transfer card renewed?", []string{"How is the EBT card renewed?", "Electronic Benefit Transfer card renewed"}},
		{role.Expand, "Who runs an electronic benefit transfer (EBT) programme?", []string{
			"Who runs an EBT programme?", "Runs an electronic benefit transfer (EBT) programme", "runs electronic benefit transfer EBT programme",
		}},
		{role.Expand, "What does ReadHeaderTimeout limit in http.Server?", []string{
			"What does read header timeout limit in http server?", "Does ReadHeaderTimeout limit in http.Server", "ReadHeaderTimeout limit http.Server",
		}},
		{role.Expand, "invoices", []string{}},
	}
	for _, tt := range tests {
		out, err := local.Rewriter{}.Rewrite(context.Background(), nil, role.RewriteInput{Question: tt.question, Technique: tt.technique})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, out.Queries); diff != "" {
			t.Errorf("%s of %q (-want +got):\n%s", tt.technique, tt.question, diff)
		}
	}
}

func TestRewriteWithDomain(t *testing.T) {
	r := local.Rewriter{Words: func(text string, n int) []string { return []string{"leave of absence", text, "  ", "sabbatical"} }}
	in := role.RewriteInput{Question: "How long is leave at most?", Technique: role.Expand, Most: 2}
	out, err := r.Rewrite(context.Background(), nil, in)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"leave of absence", "sabbatical"}, out.Queries); diff != "" {
		t.Errorf("the domain's words come first (-want +got):\n%s", diff)
	}
}

func TestRewriteErrors(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	if _, err := (local.Rewriter{}).Rewrite(ctx, nil, role.RewriteInput{Question: "x", Technique: "magic"}); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("an unknown technique: %v, want ErrInvalid", err)
	}
	cancel()
	if _, err := (local.Rewriter{}).Rewrite(ctx, nil, role.RewriteInput{Question: "x", Technique: role.HyDE}); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
}
