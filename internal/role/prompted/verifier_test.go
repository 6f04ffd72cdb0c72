package prompted_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/internal/role/prompted"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

func claim(text, quote string) role.Claim {
	return role.Claim{Text: text, Cited: []ground.Passage{{Quote: quote, Context: quote, Heading: []string{"Lease"}}}}
}

func TestVerify(t *testing.T) {
	const period = "Tenants give notice three months ahead."
	yes := `{"claim":1,"reason":"it says so","verdict":"supported","score":0.9}`
	quoting := `{"claim":1,"reason":"it says so","quotes":["three months"],"verdict":"supported","score":0.9}`
	one := func(verdicts ...string) string { return `{"verdicts":[` + strings.Join(verdicts, ",") + `]}` }
	tests := []struct {
		name   string
		claim  role.Claim
		script string
		want   assay.Verdict
		failed bool
		calls  int
	}{
		{"supported", claim("The period is 3 months.", period), one(quoting), assay.Supported, false, 1},
		{"supported without a quote", claim("The period is 3 months.", period), one(yes), assay.Unsupported, false, 3},
		{"supported by a letter", claim("The period is 3 months.", period), one(strings.Replace(quoting, "three months", "e", 1)), assay.Unsupported, false, 3},
		{"contradicted", claim("The period is 3 months.", period), one(strings.Replace(yes, "supported", "contradicted", 1)), assay.Contradicted, false, 1},
		{"supported and not sure", claim("The period is 3 months.", period), one(strings.Replace(quoting, "0.9", "0.3", 1)), assay.Unsupported, false, 1},
		{"a row under heads that are labels", role.Claim{
			Text: "Who: tenants; Price: 3 months", Cited: claim("", period).Cited,
			Row: &ground.Row{Columns: []string{"Who", "Price"}, Cells: []string{"tenants", "3 months"}, Sentence: period},
		}, one(quoting), assay.Supported, false, 1},
		{"no verdict", claim("x y", period), one(), assay.Unsupported, true, 3},
		{"two verdicts", claim("x y", period), one(yes, strings.Replace(yes, "supported", "unsupported", 1)), assay.Unsupported, true, 3},
		{"a verdict on another claim", claim("x y", period), one(strings.Replace(yes, `"claim":1`, `"claim":2`, 1)), assay.Unsupported, true, 3},
		{"a score out of range", claim("x y", period), one(strings.Replace(yes, "0.9", "9", 1)), assay.Unsupported, true, 3},
		{"an invented verdict", claim("x y", period), one(strings.Replace(yes, "supported", "true", 1)), assay.Unsupported, true, 3},
		{"no JSON", claim("x y", period), "supported", assay.Unsupported, true, 3},
		{"cites nothing", role.Claim{Text: "x y"}, one(yes), assay.Unsupported, false, 0},
	}
	for _, tt := range tests {
		c := replies(t, tt.script)
		got, err := prompted.Verifier{Config: config()}.Verify(t.Context(), c, []role.Claim{tt.claim})
		if err != nil || len(got) != 1 {
			t.Fatalf("%s: %v, %v", tt.name, got, err)
		}
		if got[0].Verdict != tt.want || got[0].Failed != tt.failed || len(c.calls) != tt.calls || got[0].Reason == "" {
			t.Errorf("%s: %+v after %d calls, want %s after %d", tt.name, got[0], len(c.calls), tt.want, tt.calls)
		}
	}
}

// TestVerifierQuotes checks that the quotes behind a verdict are located in the sources exactly. A
// verdict with invented quotes is requested again, and finally not supported.
func TestVerifierQuotes(t *testing.T) {
	const context = "Größe zählt nicht. Tenants give notice three months\nahead. Landlords take six."
	cited := []ground.Passage{
		{Quote: "The deposit is 900 euros.", Context: "The deposit is 900 euros. It is paid back.", Heading: []string{"Lease", "Deposit"}},
		{Quote: "Tenants give notice three months\nahead.", Context: context, Heading: []string{"Lease", "Notice"}},
	}
	reply := func(verdict string, quotes ...string) string {
		return mustJSON(t, map[string]any{"verdicts": []any{map[string]any{"claim": 1, "reason": "r", "quotes": quotes, "verdict": verdict, "score": 0.9}}})
	}
	const period = "Tenants give notice three months ahead."
	words := func(text string) []string { return []string{text} }
	tests := []struct {
		name   string
		script []any
		want   assay.Verdict
		quotes []string // verbatim from the sources
		calls  int
	}{
		{"none", []any{reply("supported")}, assay.Unsupported, nil, 3},
		{"over a line's end", []any{reply("supported", period)}, assay.Supported, words("Tenants give notice three months\nahead."), 1},
		{"in quotation marks", []any{reply("supported", "“three months ahead”…")}, assay.Supported, words("three months\nahead"), 1},
		{"of two sources", []any{reply("supported", "Tenants give notice", "It is paid back.")}, assay.Supported, []string{"Tenants give notice", "It is paid back."}, 1},
		{"beside what is cited", []any{reply("supported", "Größe zählt")}, assay.Supported, words("Größe zählt"), 1},
		{"of a heading", []any{reply("supported", "Lease › Notice")}, assay.Unsupported, nil, 3},
		{"of a heading and the text", []any{reply("supported", "Lease › Notice", "three months")}, assay.Supported, words("three months"), 1},
		{"of no letters", []any{reply("supported", "", "…", "“”")}, assay.Unsupported, nil, 3},
		{"made up", []any{reply("supported", "Tenants give notice at once.")}, assay.Unsupported, nil, 3},
		{"made up once", []any{reply("supported", "Tenants give notice at once."), reply("supported", period)}, assay.Supported, words("Tenants give notice three months\nahead."), 2},
		{"one of two made up", []any{reply("supported", period, "Tenants leave.")}, assay.Unsupported, nil, 3},
		{"made up against it", []any{reply("contradicted", "Tenants leave.")}, assay.Contradicted, nil, 3},
		{"against it", []any{reply("contradicted", "Landlords take six.")}, assay.Contradicted, words("Landlords take six."), 1},
	}
	for _, tt := range tests {
		c := replies(t, tt.script...)
		got, err := prompted.Verifier{Config: config()}.Verify(t.Context(), c, []role.Claim{{Text: period, Cited: cited}})
		if err != nil || len(got) != 1 || got[0].Verdict != tt.want || got[0].Failed || len(c.calls) != tt.calls {
			t.Errorf("%s: %+v, %v after %d calls", tt.name, got, err, len(c.calls))
			continue
		}
		var quotes []string
		for _, sp := range got[0].Spans {
			quotes = append(quotes, cited[sp.Passage].Context[sp.Start:sp.End])
		}
		if diff := cmp.Diff(tt.quotes, quotes); diff != "" {
			t.Errorf("%s: quotes (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestVerifierReadsTheClaimAlone checks that the model reads the self-contained form of a claim.
func TestVerifierReadsTheClaimAlone(t *testing.T) {
	c := replies(t, `{"verdicts":[{"claim":1,"quotes":["three months"],"verdict":"supported","score":1}]}`)
	said := claim("They give notice three months ahead.", "Tenants give notice three months ahead.")
	said.Said = "Tenants give notice three months ahead."
	got, err := prompted.Verifier{Config: config()}.Verify(t.Context(), c, []role.Claim{said})
	if err != nil || got[0].Verdict != assay.Supported || !strings.Contains(c.last(0), "\nTenants give notice three months ahead.\n</claim") {
		t.Errorf("%+v, %v, asked %q", got, err, c.last(0))
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestVerifyBatches checks that twenty claims take three calls, in order, and that a provider
// failure settles the remaining claims.
func TestVerifyBatches(t *testing.T) {
	var claims []role.Claim
	for i := range 20 {
		claims = append(claims, claim(fmt.Sprintf("claim %c", 'a'+i), fmt.Sprintf("claim %c", 'a'+i)))
	}
	reply := func(n int) string {
		var verdicts []string
		for i := range n {
			verdicts = append(verdicts, fmt.Sprintf(`{"claim":%d,"reason":"r","quotes":["claim"],"verdict":"supported","score":1}`, i+1))
		}
		return `{"verdicts":[` + strings.Join(verdicts, ",") + `]}`
	}
	verdicts := func(c *caller) []assay.Verdict {
		got, err := prompted.Verifier{Config: config()}.Verify(t.Context(), c, claims)
		if err != nil || len(got) != len(claims) {
			t.Fatalf("%d judgements, %v", len(got), err)
		}
		out := make([]assay.Verdict, len(got))
		for i, j := range got {
			out[i] = j.Verdict
		}
		return out
	}
	want := make([]assay.Verdict, 20)
	for i := range want {
		want[i] = assay.Supported
	}
	c := replies(t, reply(8), reply(8), reply(4))
	if diff := cmp.Diff(want, verdicts(c)); diff != "" || len(c.calls) != 3 {
		t.Errorf("%d calls (-want +got):\n%s", len(c.calls), diff)
	}
	for i := 8; i < 20; i++ {
		want[i] = assay.Unsupported
	}
	c = replies(t, reply(8), down)
	if diff := cmp.Diff(want, verdicts(c)); diff != "" || len(c.calls) != 2 {
		t.Errorf("%d calls (-want +got):\n%s", len(c.calls), diff)
	}
}

// TestVerifySmallWindow checks that a batch is smaller in a small window, and that a claim that
// never fits fails alone.
func TestVerifySmallWindow(t *testing.T) {
	long := claim("a b", strings.Repeat("word ", 4000))
	claims := []role.Claim{claim("a b", "able"), long, claim("c d", "able")}
	c := replies(t, `{"verdicts":[{"claim":1,"reason":"r","quotes":["able"],"verdict":"supported","score":1}]}`)
	got, err := prompted.Verifier{Config: prompted.Config{Model: model{llm.Facts{Window: 2048}}}}.Verify(t.Context(), c, claims)
	if err != nil || got[0].Verdict != assay.Supported || !got[1].Failed || got[2].Verdict != assay.Supported {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestVerifierIsNotTalkedInto checks that neither a document nor a domain file changes how claims
// are checked.
func TestVerifierIsNotTalkedInto(t *testing.T) {
	hostile := prompted.Config{Model: model{}, Domain: domain(t, "hostile.md")}
	for _, name := range []string{role.VerifierRole, role.SupportGraderTask} {
		if hostile.Prompt(name) != config().Prompt(name) {
			t.Errorf("the domain changes the prompt of the %s", name)
		}
		c := replies(t, everyRole[name].good)
		if _, err := everyRole[name].do(t.Context(), c, hostile); err != nil || strings.Contains(c.calls[0].Request.System, "hostile") {
			t.Errorf("%s: %v, system %q", name, err, c.calls[0].Request.System)
		}
	}
}
