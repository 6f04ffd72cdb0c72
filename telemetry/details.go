package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/tool"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/run"
)

// details are the parts of a step's input and output that are reported. Those that cannot be decoded
// stay zero, since a journal may come from another version of a strategy.
type details struct {
	call   callInput
	reply  llm.Response
	tool   string // its name
	query  assay.Query
	hits   []assay.Hit
	found  int
	top    float64 // relevance of the best hit
	grade  string
	judged []judgement
}

// callInput is the input of a model call (see role.Call).
type callInput struct {
	Role    string `json:"role"`
	Prompt  string `json:"prompt"`
	Request struct {
		System   string        `json:"system"`
		Messages []llm.Message `json:"messages"`
	} `json:"request"`
}

type judgement struct {
	Verdict assay.Verdict `json:"verdict"`
	Score   float64       `json:"score"`
}

// foundHits are the results of a search without their texts.
type foundHits struct {
	Hits []struct {
		Scores struct {
			Relevance float64 `json:"relevance"`
		} `json:"scores"`
	} `json:"hits"`
}

// read decodes data, which may be of another form.
func read(data json.RawMessage, into any) {
	if len(data) > 0 {
		_ = json.Unmarshal(data, into)
	}
}

// details decodes the reported values of a step that has ended.
func (t *Telemetry) details(e run.Event) details {
	var d details
	switch e.Kind {
	case assay.StepModel:
		read(e.Output, &d.reply)
		if t.config.Texts {
			read(e.Input, &d.call)
			break
		}
		var named struct {
			Role   string `json:"role"`
			Prompt string `json:"prompt"`
		}
		read(e.Input, &named)
		d.call.Role, d.call.Prompt = named.Role, named.Prompt
	case assay.StepTool:
		var c struct {
			Tool string `json:"tool"`
		}
		read(e.Input, &c)
		d.tool = tools.of(c.Tool)
	case assay.StepSearch, assay.StepWeb:
		t.search(e, &d)
	case assay.StepGrade:
		var g struct {
			Verdict string `json:"verdict"`
		}
		read(e.Output, &g)
		d.grade = grades.of(g.Verdict)
	case assay.StepVerify:
		read(e.Output, &d.judged)
	}
	return d
}

func (t *Telemetry) search(e run.Event, d *details) {
	var in struct {
		Query assay.Query `json:"query"`
	}
	read(e.Input, &in)
	d.query = in.Query
	if t.config.Texts {
		var out assay.Results
		read(e.Output, &out)
		d.hits, d.found = out.Hits, len(out.Hits)
		for _, h := range out.Hits {
			d.top = max(d.top, h.Scores.Relevance)
		}
		return
	}
	var out foundHits
	read(e.Output, &out)
	d.found = len(out.Hits)
	for _, h := range out.Hits {
		d.top = max(d.top, h.Scores.Relevance)
	}
}

var (
	tools  = newBounded(tool.Names()...)
	grades = newBounded(assay.Sufficient, assay.Partly, assay.Insufficient)
)

// operations are the operations of steps by their kind.
var operations = map[assay.StepKind]string{
	assay.StepPlan: opPlan, assay.StepSearch: opRetrieval, assay.StepWeb: opRetrieval, assay.StepRead: opRead, assay.StepGrade: opGrade,
	assay.StepGenerate: opGenerate, assay.StepVerify: opVerify, assay.StepModel: opChat, assay.StepRerank: opRerank, assay.StepRole: opRole,
	assay.StepReader: opReader, assay.StepTool: opTool, assay.StepCache: opCache, assay.StepRung: opRung, assay.StepHuman: opHuman, assay.StepClock: opClock,
}

func operationOf(kind assay.StepKind) string {
	if op, ok := operations[kind]; ok {
		return op
	}
	return opStep
}

// spanName returns the name and the kind of a step's span.
func spanName(e run.Event) (string, trace.SpanKind) {
	op := operationOf(e.Kind)
	switch e.Kind {
	case assay.StepModel:
		_, model := splitModel(e.Model)
		return op + " " + model, trace.SpanKindClient
	case assay.StepSearch, assay.StepWeb:
		var in struct {
			Query struct {
				Collections []string `json:"collections"`
			} `json:"query"`
		}
		read(e.Input, &in)
		return op + " " + sourceOf(e.Kind, in.Query.Collections), trace.SpanKindClient
	case assay.StepTool:
		var c struct {
			Tool string `json:"tool"`
		}
		read(e.Input, &c)
		return op + " " + tools.of(c.Tool), trace.SpanKindInternal
	case assay.StepRole, assay.StepRung, assay.StepReader: // their last names are the strategy's words
		name, _, _ := strings.Cut(path.Base(e.Path), "[")
		return op + " " + name, trace.SpanKindInternal
	}
	return op, trace.SpanKindInternal
}

// sourceOf returns the data source of a search: the collection, if there is one.
func sourceOf(kind assay.StepKind, collections []string) string {
	switch {
	case kind == assay.StepWeb:
		return "web"
	case len(collections) == 1:
		return collections[0]
	}
	return "documents"
}

// oiKinds are the kinds of OpenInference by operation.
var oiKinds = map[string]string{
	opChat: "LLM", opRetrieval: "RETRIEVER", opTool: "TOOL", opRerank: "RERANKER", opGrade: "EVALUATOR", opVerify: "EVALUATOR",
}

// stepAttributes returns the attributes of a step that has ended.
func (s *runSpans) stepAttributes(e run.Event, d details) []attribute.KeyValue {
	op := operationOf(e.Kind)
	attrs := []attribute.KeyValue{
		attribute.String(attrOperation, op), attribute.String(attrConversation, s.run.ID),
		attribute.String(attrStepPath, e.Path), attribute.String(attrStepKind, string(e.Kind)),
	}
	if e.Ordinal >= 0 {
		attrs = append(attrs, attribute.Int(attrStepOrdinal, e.Ordinal))
	}
	if e.Usage.CostMicros > 0 {
		attrs = append(attrs, attribute.Int64(attrCost, e.Usage.CostMicros))
	}
	if s.t.config.OpenInference {
		kind := oiKinds[op]
		if kind == "" {
			kind = "CHAIN"
		}
		attrs = append(attrs, attribute.String(attrOIKind, kind), attribute.String(attrOISession, s.run.ID))
	}
	switch e.Kind {
	case assay.StepModel:
		attrs = append(attrs, s.t.chatAttributes(e, d)...)
	case assay.StepSearch, assay.StepWeb:
		attrs = append(attrs, s.t.searchAttributes(e, d)...)
	case assay.StepTool:
		attrs = append(attrs, s.t.toolAttributes(e, d)...)
	case assay.StepGrade:
		attrs = append(attrs, attribute.String(attrGrade, d.grade))
	}
	if e.Model != "" && e.Kind != assay.StepModel {
		provider, model := splitModel(e.Model)
		attrs = append(attrs, attribute.String(attrProvider, provider), attribute.String(attrRequestModel, model))
	}
	return attrs
}

// chatAttributes returns the attributes of a model call.
func (t *Telemetry) chatAttributes(e run.Event, d details) []attribute.KeyValue {
	provider, model := splitModel(e.Model)
	attrs := []attribute.KeyValue{
		attribute.String(attrProvider, provider), attribute.String(attrRequestModel, model),
		attribute.Int(attrInputTokens, e.Usage.InputTokens), attribute.Int(attrOutputTokens, e.Usage.OutputTokens),
		attribute.Int(attrAttempts, len(d.reply.Attempts)),
	}
	if d.call.Role != "" {
		attrs = append(attrs, attribute.String(attrRole, roles.of(d.call.Role)), attribute.String(attrPrompt, d.call.Prompt))
	}
	if d.reply.Served != "" {
		attrs = append(attrs, attribute.String(attrResponseModel, cut(d.reply.Served, 100)))
	}
	if d.reply.Finish != "" {
		attrs = append(attrs, attribute.StringSlice(attrFinish, []string{string(d.reply.Finish)}))
	}
	if d.reply.Cached > 0 {
		attrs = append(attrs, attribute.Int(attrCachedTokens, d.reply.Cached))
	}
	if t.config.OpenInference {
		attrs = append(attrs,
			attribute.String(attrOIModel, model), attribute.String(attrOIProvider, provider),
			attribute.Int(attrOIPrompt, e.Usage.InputTokens), attribute.Int(attrOIReply, e.Usage.OutputTokens),
			attribute.Int(attrOITotal, e.Usage.InputTokens+e.Usage.OutputTokens))
	}
	if !t.config.Texts {
		return attrs
	}
	if d.call.Request.System != "" {
		attrs = append(attrs, t.text(attrSystem, jsonOf([]part{{Type: "text", Content: d.call.Request.System}}))...)
	}
	attrs = append(attrs, t.texts(attrInputMessages, attrOIInput, jsonOf(messagesOf(d.call.Request.Messages)))...)
	if d.reply.Text != "" || len(d.reply.Calls) > 0 {
		reply := messagesOf([]llm.Message{{Speaker: llm.Assistant, Text: d.reply.Text, Calls: d.reply.Calls}})
		reply[0].Finish = string(d.reply.Finish)
		attrs = append(attrs, t.texts(attrOutputMessages, attrOIOutput, jsonOf(reply))...)
	}
	return attrs
}

// A message is a message in the form of the semantic conventions.
type message struct {
	Role   string `json:"role"`
	Parts  []part `json:"parts"`
	Finish string `json:"finish_reason,omitempty"`
}

type part struct {
	Type      string `json:"type"`
	Content   string `json:"content,omitempty"`
	ID        string `json:"id,omitempty"`
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments,omitempty"`
	Result    string `json:"response,omitempty"`
}

func messagesOf(from []llm.Message) []message {
	out := make([]message, 0, len(from))
	for _, m := range from {
		to := message{Role: string(m.Speaker)}
		if m.Text != "" {
			to.Parts = append(to.Parts, part{Type: "text", Content: m.Text})
		}
		for _, c := range m.Calls {
			to.Parts = append(to.Parts, part{Type: "tool_call", ID: c.ID, Name: c.Name, Arguments: c.Arguments})
		}
		for _, r := range m.Results {
			to.Parts = append(to.Parts, part{Type: "tool_call_response", ID: r.Call, Result: r.Text})
		}
		out = append(out, to)
	}
	return out
}

// maxDocuments is the number of hits of a search that a span lists.
const maxDocuments = 10

// searchAttributes returns the attributes of a search.
func (t *Telemetry) searchAttributes(e run.Event, d details) []attribute.KeyValue {
	attrs := []attribute.KeyValue{
		attribute.String(attrDataSource, sourceOf(e.Kind, d.query.Collections)),
		attribute.Int(attrHits, d.found), attribute.Float64(attrTopRelevance, d.top),
	}
	if !t.config.Texts {
		return attrs
	}
	attrs = append(attrs, t.texts(attrQueryText, attrOIInput, d.query.Text)...)
	type document struct {
		ID      string  `json:"id"`
		Score   float64 `json:"score"`
		Content string  `json:"content"`
	}
	var all []document
	for i, h := range d.hits {
		if i == maxDocuments {
			break
		}
		all = append(all, document{h.Chunk.ID, h.Scores.Relevance, h.Text})
		if t.config.OpenInference {
			prefix := fmt.Sprintf(oiDocument, i)
			attrs = append(attrs, attribute.String(prefix+"id", h.Chunk.ID), attribute.Float64(prefix+"score", h.Scores.Relevance))
			attrs = append(attrs, t.text(prefix+"content", h.Text)...)
		}
	}
	return append(attrs, t.text(attrDocuments, jsonOf(all))...)
}

// toolAttributes returns the attributes of a call of a tool.
func (t *Telemetry) toolAttributes(e run.Event, d details) []attribute.KeyValue {
	attrs := []attribute.KeyValue{attribute.String(attrTool, d.tool)}
	if t.config.OpenInference {
		attrs = append(attrs, attribute.String(attrOITool, d.tool))
	}
	if t.config.Texts {
		attrs = append(attrs, t.texts(attrToolArguments, attrOIInput, string(e.Input))...)
		attrs = append(attrs, t.texts(attrToolResult, attrOIOutput, string(e.Output))...)
	}
	return attrs
}

// evaluations adds an event for a grade and for each verdict.
func (t *Telemetry) evaluations(span trace.Span, e run.Event, d details, at time.Time) {
	if e.Kind == assay.StepGrade && e.Err == nil {
		span.AddEvent(eventEvaluation, trace.WithTimestamp(at), trace.WithAttributes(
			attribute.String(attrEvalName, evalGrade), attribute.String(attrEvalLabel, d.grade)))
	}
	for _, j := range d.judged {
		span.AddEvent(eventEvaluation, trace.WithTimestamp(at), trace.WithAttributes(
			attribute.String(attrEvalName, evalVerdict), attribute.String(attrEvalLabel, verdicts.of(string(j.Verdict))),
			attribute.Float64(attrEvalScore, j.Score)))
	}
}

var verdicts = newBounded(assay.Supported, assay.Contradicted, assay.Unsupported)

// maxTextBytes is the most bytes of a text that a span has.
const maxTextBytes = 32 << 10

// text returns an attribute with a text, and one that says if it was cut.
func (t *Telemetry) text(name, value string) []attribute.KeyValue {
	if len(value) <= maxTextBytes {
		return []attribute.KeyValue{attribute.String(name, value)}
	}
	end := maxTextBytes
	for end > 0 && !utf8.RuneStart(value[end]) {
		end--
	}
	return []attribute.KeyValue{attribute.String(name, value[:end]), attribute.Bool(attrCut, true)}
}

// texts is text with the attribute of OpenInference, if that is configured.
func (t *Telemetry) texts(name, openInference, value string) []attribute.KeyValue {
	attrs := t.text(name, value)
	if t.config.OpenInference {
		attrs = append(attrs, t.text(openInference, value)...)
	}
	return attrs
}

func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}

// errorKinds are the kinds of errors with the words for them, which are the values of error.type.
var errorKinds = []struct {
	err  error
	name string
}{
	{assay.ErrBudget, "budget"}, {assay.ErrDeadline, "deadline"}, {assay.ErrUnavailable, "unavailable"}, {assay.ErrQuota, "quota"},
	{assay.ErrStopped, "stopped"}, {assay.ErrSuspended, "suspended"}, {assay.ErrInvalid, "invalid"}, {assay.ErrNotFound, "not_found"},
	{assay.ErrForbidden, "forbidden"}, {assay.ErrUnauthenticated, "unauthenticated"}, {assay.ErrDiverged, "diverged"}, {assay.ErrDamaged, "damaged"},
	{assay.ErrLocked, "locked"}, {assay.ErrLeased, "leased"}, {assay.ErrReadOnly, "read_only"}, {assay.ErrFull, "full"}, {assay.ErrNewer, "newer"},
	{assay.ErrForeign, "foreign"}, {context.DeadlineExceeded, "timeout"}, {context.Canceled, "canceled"},
}

// errorType returns the kind of an error, without its text.
func errorType(err error) string {
	for _, k := range errorKinds {
		if errors.Is(err, k.err) {
			return k.name
		}
	}
	return "_OTHER"
}

// errorLabel returns the kind of an error, or none.
func errorLabel(err error) string {
	if err == nil {
		return none
	}
	return errorType(err)
}
