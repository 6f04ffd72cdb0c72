package ui

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/role"
)

// A kindWords is how pages show a kind of step.
type kindWords struct{ Icon, Word string }

// stepKinds are the words for the kinds of step, in the order in which pages list them.
var stepKinds = []struct {
	kind assay.StepKind
	kindWords
}{
	{assay.StepCache, kindWords{"copy", "Earlier answers"}},
	{assay.StepPlan, kindWords{"plan", "Plan"}},
	{assay.StepSearch, kindWords{"search", "Search"}},
	{assay.StepWeb, kindWords{"link", "Web"}},
	{assay.StepTool, kindWords{"key", "Tool"}},
	{assay.StepRerank, kindWords{"scale", "Rank"}},
	{assay.StepGrade, kindWords{"scale", "Grade"}},
	{assay.StepRung, kindWords{"split", "Next try"}},
	{assay.StepGenerate, kindWords{"write", "Write"}},
	{assay.StepRead, kindWords{"file", "Read"}},
	{assay.StepVerify, kindWords{"shield", "Verify"}},
	{assay.StepRole, kindWords{"flag", "Role"}},
	{assay.StepReader, kindWords{"file", "Compare"}},
	{assay.StepModel, kindWords{"play", "Model call"}},
	{assay.StepHuman, kindWords{"person", "Reviewer"}},
	{assay.StepClock, kindWords{"clock", "Clock"}},
}

func wordsOfKind(k assay.StepKind) kindWords {
	for _, s := range stepKinds {
		if s.kind == k {
			return s.kindWords
		}
	}
	return kindWords{"question", string(k)}
}

// A timeLine maps times to a line without the times in which no step was taken, such as those in
// which a run waited for a person.
type timeLine struct {
	spans []lineSpan
	total time.Duration
	idle  time.Duration // left out
}

// A lineSpan is a time in which steps were taken one after the other or at once.
type lineSpan struct {
	start, end time.Time
	at         time.Duration // of start on the line
}

// maxIdle is the longest time without a step that is drawn.
const maxIdle = time.Second

func newTimeLine(steps []engine.Step) timeLine {
	sorted := slices.SortedFunc(slices.Values(steps), func(a, b engine.Step) int { return a.Started.Compare(b.Started) })
	var l timeLine
	for _, s := range sorted {
		if s.Started.IsZero() || s.Kind == assay.StepClock {
			continue
		}
		end := s.Started.Add(s.Elapsed)
		if n := len(l.spans); n > 0 && s.Started.Sub(l.spans[n-1].end) <= maxIdle {
			if last := &l.spans[n-1]; end.After(last.end) {
				last.end = end
			}
			continue
		}
		l.spans = append(l.spans, lineSpan{start: s.Started, end: end})
	}
	for i := range l.spans {
		l.spans[i].at = l.total
		l.total += l.spans[i].end.Sub(l.spans[i].start)
		if i > 0 {
			l.idle += l.spans[i].start.Sub(l.spans[i-1].end)
		}
	}
	return l
}

// lineWidth is the width of the drawn line.
const lineWidth = 1000

// A lineBar is a step on the line, in units of which the line has lineWidth.
type lineBar struct{ X, Width float64 }

// bar returns where a step is drawn, at least wide enough to be seen.
func (l timeLine) bar(s engine.Step) lineBar {
	const least = 3
	if l.total <= 0 {
		return lineBar{0, least}
	}
	at := time.Duration(0)
	for _, span := range l.spans {
		if !s.Started.Before(span.start) {
			at = span.at + s.Started.Sub(span.start)
		}
	}
	scale := func(d time.Duration) float64 { return lineWidth * float64(d) / float64(l.total) }
	width := max(least, scale(s.Elapsed))
	return lineBar{min(scale(at), lineWidth-least), min(width, lineWidth)}
}

// A traceKind sums up the steps of one kind.
type traceKind struct {
	Kind assay.StepKind
	kindWords
	Steps   int
	Failed  int
	Elapsed time.Duration
	Usage   assay.Usage
	Bars    []lineBar
}

// maxKindBars is the most bars that are drawn for one kind.
const maxKindBars = 400

// traceKinds sums up steps by kind.
func traceKinds(steps []engine.Step, line timeLine) []traceKind {
	sums := map[assay.StepKind]*traceKind{}
	for _, s := range steps {
		k := sums[s.Kind]
		if k == nil {
			k = &traceKind{Kind: s.Kind, kindWords: wordsOfKind(s.Kind)}
			sums[s.Kind] = k
		}
		k.Steps++
		k.Elapsed += s.Elapsed
		k.Usage = k.Usage.Add(s.Usage)
		if s.Error != nil {
			k.Failed++
		}
		bar := line.bar(s)
		if n := len(k.Bars); n > 0 && bar.X < k.Bars[n-1].X+k.Bars[n-1].Width+1 && bar.X >= k.Bars[n-1].X {
			k.Bars[n-1].Width = max(k.Bars[n-1].Width, bar.X+bar.Width-k.Bars[n-1].X)
		} else if n < maxKindBars {
			k.Bars = append(k.Bars, bar)
		}
	}
	var all []traceKind
	for _, s := range stepKinds {
		if k := sums[s.kind]; k != nil && s.kind != assay.StepClock {
			all = append(all, *k)
		}
	}
	return all
}

// A stepGroup is the steps of one scope: a sub-question or a round.
type stepGroup struct {
	Name    string
	Elapsed time.Duration
	Rows    []stepRow
}

// A stepRow is a step in a list.
type stepRow struct {
	engine.Step
	kindWords
	Number  int // in the journal, from 1
	Depth   int // of a call inside a step
	Bar     lineBar
	Failed  bool
	Hidden  bool
	Taken   bool // by a fork, from the run that it was forked from
	Cached  int  // tokens that a provider read from its cache
	Open    bool
	Size    int64 // of input and output
	Whole   bool  // nothing is cut
	Input   []block
	Output  []block
	RawIn   block
	RawOut  block
	Service string // model that answered, if it is another one
}

func newStepRow(s engine.Step, line timeLine, most blockLimit) stepRow {
	r := stepRow{
		Step: s, kindWords: wordsOfKind(s.Kind), Number: s.Ordinal + 1, Bar: line.bar(s), Failed: s.Error != nil, Hidden: isHidden(s),
		Size: int64(len(s.Input) + len(s.Output)),
	}
	_, inner := scopeOf(s.Path)
	r.Depth = min(2, strings.Count(inner, "/"))
	if s.Kind == assay.StepModel {
		var reply modelReply
		if json.Unmarshal(s.Output, &reply) == nil {
			r.Cached = reply.Cached
			if reply.Served != s.Model {
				r.Service = reply.Served
			}
		}
	}
	r.Input, r.Output = stepBlocks(s, most)
	r.RawIn, r.RawOut = jsonBlock("Input", s.Input, most), jsonBlock("Output", s.Output, most)
	r.Whole = !slices.ContainsFunc(slices.Concat(r.Input, r.Output), block.isCut)
	return r
}

// scopeOf divides the path of a step into its scope, which ends at the last numbered element that is
// not a call, and the rest.
func scopeOf(path string) (scope, inner string) {
	parts := strings.Split(path, "/")
	n := 0
	for i, part := range parts[:len(parts)-1] {
		if strings.HasPrefix(part, "call[") || !strings.HasSuffix(part, "]") {
			break
		}
		n = i + 1
	}
	return strings.Join(parts[:n], "/"), strings.Join(parts[n:], "/")
}

// scopeNames are the words for elements of scopes.
var scopeNames = map[string]string{
	"sub": "sub-question", "finish": "answer",
}

// countedScopes are the elements of scopes of which there are several as a rule.
var countedScopes = []string{"sub", "round", "hop", "step", "draft", "critique", "part"}

// scopeWords returns a scope in words: "Sub-question 2, round 1".
func scopeWords(scope string) string {
	if scope == "" {
		return "The question"
	}
	var words []string
	for part := range strings.SplitSeq(scope, "/") {
		name, rest, _ := strings.Cut(part, "[")
		word := cmp.Or(scopeNames[name], name)
		if n, err := strconv.Atoi(strings.TrimSuffix(rest, "]")); err == nil && (n > 0 || slices.Contains(countedScopes, name)) {
			word += " " + strconv.Itoa(n+1)
		}
		words = append(words, word)
	}
	text := strings.Join(words, ", ")
	return strings.ToUpper(text[:1]) + text[1:]
}

// byGroup sorts steps by scope, in the order in which the scopes began, and those of a scope by time.
func byGroup(steps []engine.Step) []engine.Step {
	began := map[string]int{}
	for _, s := range steps {
		scope, _ := scopeOf(s.Path)
		if _, ok := began[scope]; !ok {
			began[scope] = s.Ordinal
		}
	}
	return slices.SortedStableFunc(slices.Values(steps), func(a, b engine.Step) int {
		x, _ := scopeOf(a.Path)
		y, _ := scopeOf(b.Path)
		return cmp.Or(cmp.Compare(began[x], began[y]), a.Started.Compare(b.Started), cmp.Compare(a.Ordinal, b.Ordinal))
	})
}

// groupsOf returns steps, sorted by byGroup, in groups. began is when a fork began, and open the number
// of the step that is open.
func groupsOf(steps []engine.Step, line timeLine, began time.Time, open int) []stepGroup {
	var groups []stepGroup
	last := "\x00"
	for _, s := range steps {
		scope, inner := scopeOf(s.Path)
		if scope != last {
			groups = append(groups, stepGroup{Name: scopeWords(scope)})
			last = scope
		}
		row := newStepRow(s, line, inlineStep)
		row.Taken, row.Open = s.Started.Before(began), row.Number == open
		g := &groups[len(groups)-1]
		g.Rows = append(g.Rows, row)
		if !strings.Contains(inner, "/") {
			g.Elapsed += s.Elapsed
		}
	}
	return groups
}

// A blockLimit is how much of a step is shown.
type blockLimit struct {
	text  int // bytes of a text
	items int // of a list
}

var (
	inlineStep = blockLimit{1200, 5}
	wholeStep  = blockLimit{1 << 20, 1000}
)

// A block is a part of what a step read or wrote. One of its fields besides Title is set.
type block struct {
	Title  string
	Text   string // prose
	Code   string // JSON, or a prompt with its layout
	List   []string
	Facts  []stepFact
	Hits   []stepHit
	Claims []stepClaim
	Cut    string // the part that is left out: "3 more hits"
}

func (b block) isCut() bool { return b.Cut != "" }

type stepFact struct{ Name, Value string }

// A stepHit is a hit of a search.
type stepHit struct {
	Rank      int
	Under     string
	Text      string
	URI, Link string // Link is empty unless it is an address of the web
	Place     string
	Relevance float64
	Scores    []stepFact
}

// A stepClaim is a claim with its verdict.
type stepClaim struct {
	Text, Class, Icon, Verdict, Reason string
	Score                              float64
	Cited                              []string
}

// stepText returns a text, cut to the limit.
func stepText(title, text string, most blockLimit) block {
	b := block{Title: title, Text: cut(text, most.text)}
	if left := len(text) - len(b.Text); left > 0 {
		b.Cut = size(int64(left)) + " more"
	}
	return b
}

// stepCode returns a text whose layout counts, cut to the limit.
func stepCode(title, text string, most blockLimit) block {
	b := stepText(title, text, most)
	b.Code, b.Text = b.Text, ""
	return b
}

// jsonBlock returns indented JSON, cut to the limit.
func jsonBlock(title string, data json.RawMessage, most blockLimit) block {
	return stepCode(title, string(indented(data)), most)
}

func indented(data json.RawMessage) []byte {
	var b bytes.Buffer
	if json.Indent(&b, data, "", "  ") != nil {
		return data
	}
	return b.Bytes()
}

func stepList(title string, list []string, most blockLimit) block {
	b := block{Title: title, List: slices.Clone(list[:min(len(list), most.items)])}
	for i, text := range b.List {
		b.List[i] = cut(text, most.text)
	}
	if left := len(list) - len(b.List); left > 0 {
		b.Cut = fmt.Sprintf("%d more", left)
	}
	return b
}

// stepBlocks returns what a step read and wrote in a readable form. What has no such form is JSON.
func stepBlocks(s engine.Step, most blockLimit) (in, out []block) {
	if isHidden(s) {
		return nil, nil
	}
	if s.Error != nil {
		in, _ = readable(s, most)
		return in, []block{stepText("Error", s.Error.Message, most)}
	}
	in, out = readable(s, most)
	if len(in) == 0 {
		in = []block{jsonBlock("", s.Input, most)}
	}
	if len(out) == 0 {
		out = []block{jsonBlock("", s.Output, most)}
	}
	return in, out
}

func readable(s engine.Step, most blockLimit) (in, out []block) {
	switch s.Kind {
	case assay.StepPlan:
		return nil, planBlocks(s, most)
	case assay.StepSearch:
		return searchBlocks(s, most)
	case assay.StepGrade:
		return gradeBlocks(s, most)
	case assay.StepGenerate:
		return nil, draftBlocks(s, most)
	case assay.StepVerify:
		return verifyBlocks(s, most)
	case assay.StepModel:
		return modelBlocks(s, most)
	}
	return nil, nil
}

// decoded reads JSON of a step; false: it has another form.
func decoded[T any](data json.RawMessage) (v T, ok bool) {
	return v, len(data) > 0 && json.Unmarshal(data, &v) == nil
}

func planBlocks(s engine.Step, most blockLimit) []block {
	plan, ok := decoded[role.Plan](s.Output)
	if !ok || len(plan.SubQuestions) == 0 {
		return nil
	}
	var parts []string
	for _, sub := range plan.SubQuestions {
		text := sub.Text
		for i, need := range sub.Needs {
			text += map[bool]string{true: " – after ", false: ", "}[i == 0] + strconv.Itoa(need+1)
		}
		parts = append(parts, text)
	}
	blocks := []block{{Title: "Shape", Text: string(plan.Shape)}, stepList("Sub-questions", parts, most)}
	return append(blocks, outcomeBlocks(plan.Outcome, most)...)
}

// outcomeBlocks say what went wrong with the job of a role.
func outcomeBlocks(o role.Outcome, most blockLimit) (blocks []block) {
	if o.Failure != "" {
		blocks = append(blocks, stepText("Failure", o.Failure, most))
	}
	if len(o.Notes) > 0 {
		blocks = append(blocks, stepList("Notes", o.Notes, most))
	}
	return blocks
}

func searchBlocks(s engine.Step, most blockLimit) (in, out []block) {
	if q, ok := decoded[struct {
		Query assay.Query `json:"query"`
	}](s.Input); ok && q.Query.Text != "" {
		in = append(in, stepText("Query", q.Query.Text, most))
		if len(q.Query.Rewrites) > 0 {
			in = append(in, stepList("Other wordings", q.Query.Rewrites, most))
		}
		if len(q.Query.Collections) > 0 {
			in = append(in, stepList("Collections", q.Query.Collections, most))
		}
	}
	results, ok := decoded[assay.Results](s.Output)
	if !ok {
		return in, nil
	}
	hits := block{Title: count(len(results.Hits), "hit")}
	for i, h := range results.Hits[:min(len(results.Hits), most.items)] {
		hits.Hits = append(hits.Hits, stepHitOf(i+1, h, most))
	}
	if left := len(results.Hits) - len(hits.Hits); left > 0 {
		hits.Cut = count(left, "more hit")
	}
	out = []block{hits}
	var notes []string
	for _, n := range results.Notes {
		notes = append(notes, n.Text)
	}
	if len(notes) > 0 {
		out = append(out, stepList("Notes", notes, most))
	}
	return in, out
}

func stepHitOf(rank int, h assay.Hit, most blockLimit) stepHit {
	hit := stepHit{Rank: rank, Under: h.Under(), URI: h.URI, Relevance: h.Scores.Relevance, Text: cut(h.Text, max(300, most.text/4))}
	if u, err := url.Parse(h.URI); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
		hit.Link = h.URI
	}
	switch {
	case h.Page > 0:
		hit.Place = fmt.Sprintf("page %d", h.Page)
	case h.Line > 0:
		hit.Place = fmt.Sprintf("line %d", h.Line)
	}
	for _, score := range []struct {
		name  string
		value *float64
	}{{"words", h.Scores.BM25}, {"vector", h.Scores.Vector}, {"graph", h.Scores.Graph}, {"fused", h.Scores.Fused}, {"rerank", h.Scores.Rerank}, {"managed", h.Scores.Managed}} {
		if score.value != nil {
			hit.Scores = append(hit.Scores, stepFact{score.name, fixed(*score.value)})
		}
	}
	return hit
}

func gradeBlocks(s engine.Step, most blockLimit) (in, out []block) {
	if q, ok := decoded[role.GradeInput](s.Input); ok && q.Question != "" {
		in = []block{stepText("Question", q.Question, most), {Title: "Evidence", Text: count(len(q.Hits), "hit")}}
	}
	g, ok := decoded[role.Grade](s.Output)
	if !ok || g.Verdict == "" {
		return in, nil
	}
	facts := []stepFact{{"Verdict", string(g.Verdict)}, {"Relevant passages", strconv.Itoa(len(g.Relevant))}}
	if g.Answerability != nil {
		facts = append(facts, stepFact{"Probability that they hold the answer", fixed(*g.Answerability)})
	}
	out = []block{{Facts: facts}}
	for _, text := range []stepFact{{"Reason", g.Reason}, {"Next query", g.Query}} {
		if text.Value != "" {
			out = append(out, stepText(text.Name, text.Value, most))
		}
	}
	if len(g.Missing) > 0 {
		out = append(out, stepList("Missing", g.Missing, most))
	}
	return in, append(out, outcomeBlocks(g.Outcome, most)...)
}

func draftBlocks(s engine.Step, most blockLimit) []block {
	d, ok := decoded[role.Draft](s.Output)
	if !ok {
		return nil
	}
	var statements []string
	for _, one := range d.Statements {
		text := one.Text
		for _, n := range one.Evidence {
			text += fmt.Sprintf(" [%d]", n)
		}
		statements = append(statements, text)
	}
	out := []block{stepList("Statements, not verified yet", statements, most)}
	if len(d.Open) > 0 {
		out = append(out, stepList("Open", d.Open, most))
	}
	return append(out, outcomeBlocks(d.Outcome, most)...)
}

// stepVerdicts are how pages show a verdict on a claim.
var stepVerdicts = map[assay.Verdict]struct{ class, icon, word string }{
	assay.Supported:    {"good", "check", "Supported"},
	assay.Contradicted: {"bad", "cross", "Contradicted"},
	assay.Unsupported:  {"warn", "dash", "Not supported"},
}

func verifyBlocks(s engine.Step, most blockLimit) (in, out []block) {
	asked, ok := decoded[[]struct {
		Claim string           `json:"claim"`
		Cited []ground.Passage `json:"cited"`
	}](s.Input)
	verdicts, judged := decoded[[]ground.Judgement](s.Output)
	if !ok || !judged || len(asked) != len(verdicts) {
		return nil, nil
	}
	claims := block{Title: count(len(asked), "claim")}
	for i, a := range asked[:min(len(asked), most.items)] {
		v := verdicts[i]
		words := stepVerdicts[v.Verdict]
		claim := stepClaim{Text: cut(a.Claim, most.text), Class: words.class, Icon: cmp.Or(words.icon, "question"), Verdict: cmp.Or(words.word, string(v.Verdict)), Reason: cmp.Or(v.Refused, v.Reason), Score: v.Score}
		for _, p := range a.Cited[:min(len(a.Cited), most.items)] {
			claim.Cited = append(claim.Cited, cut(cmp.Or(p.Quote, p.Context), most.text))
		}
		claims.Claims = append(claims.Claims, claim)
	}
	if left := len(asked) - len(claims.Claims); left > 0 {
		claims.Cut = count(left, "more claim")
	}
	return []block{{Title: "Claims", Text: "See the verdicts below. Each was judged by the words that it cites."}}, []block{claims}
}

// A modelRequest is the request of a model call in the journal.
type modelRequest struct {
	Role    string `json:"role"`
	Prompt  string `json:"prompt"`
	Request struct {
		System   string `json:"system"`
		Messages []struct {
			Speaker string `json:"speaker"`
			Text    string `json:"text"`
		} `json:"messages"`
	} `json:"request"`
}

// A modelReply is the reply of a model call in the journal.
type modelReply struct {
	Text     string `json:"text"`
	Finish   string `json:"finish"`
	Served   string `json:"served"`
	Cached   int    `json:"cached"`
	Attempts []struct {
		Kind    string `json:"kind"`
		Message string `json:"message"`
	} `json:"attempts"`
	Calls []struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"calls"`
}

func modelBlocks(s engine.Step, most blockLimit) (in, out []block) {
	if q, ok := decoded[modelRequest](s.Input); ok && len(q.Request.Messages) > 0 {
		if q.Prompt != "" {
			in = append(in, block{Facts: []stepFact{{"Prompt template", q.Prompt}}})
		}
		if q.Request.System != "" {
			in = append(in, stepCode("Instructions", q.Request.System, most))
		}
		for _, m := range q.Request.Messages {
			in = append(in, stepCode(map[bool]string{true: "Model", false: "Message"}[m.Speaker == "assistant"], m.Text, most))
		}
	}
	r, ok := decoded[modelReply](s.Output)
	if !ok || r.Finish == "" {
		return in, nil
	}
	out = append(out, stepCode("Reply", r.Text, most))
	for _, c := range r.Calls {
		out = append(out, stepCode("Calls "+c.Name, string(indented(json.RawMessage(c.Arguments))), most))
	}
	var failed []string
	for _, a := range r.Attempts {
		failed = append(failed, a.Kind+": "+a.Message)
	}
	if len(failed) > 0 {
		out = append(out, stepList("Failed attempts", failed, most))
	}
	return in, append(out, block{Facts: []stepFact{{"Ended by", r.Finish}}})
}
