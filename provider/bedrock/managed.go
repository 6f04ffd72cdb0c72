package bedrock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockagentruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockagentruntime/types"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/internal/passage"
	"github.com/assay-rag/assay/provider/internal/wire"
)

// An Answer is the answer of a managed service of Bedrock. It is not verified.
type Answer struct {
	Text string

	// Citations are the parts of the text for which Bedrock gives sources, in its order.
	Citations []Citation

	Session    string // to continue the conversation
	Intervened bool   // a guardrail replaced or changed Text
	Notes      []string
	Usage      assay.Usage // calls; Bedrock does not report tokens
}

// A Citation links the bytes [Start, End) of an answer's text to retrieved documents. If the part
// given by Bedrock does not occur in the text, both are 0, and the answer has a note on it.
type Citation struct {
	Start, End int
	Hits       []assay.Hit
}

// A Generation configures how a knowledge base answers questions itself.
type Generation struct {
	Model     string // ARN of the answering foundation model or inference profile
	Decompose bool   // split questions into sub-queries (query decomposition)
	Guardrail Guardrail
	MaxTokens int  // of the answer; 0: Bedrock's default
	Stream    bool // request the answer as a stream
}

// A Question is a question to a managed service.
type Question struct {
	Text    string
	Filter  assay.Filter // of documents; the zero Filter keeps all
	Limit   int          // passages to answer from; 0: Bedrock's default
	Session string       // of an earlier Answer; empty: a new conversation
}

// Answer has the knowledge base answer a question from the documents that access may see, in one
// call (RetrieveAndGenerate). If text is not nil and the answer is a stream, text receives the text
// as it arrives. The text precedes its citations, so it has not yet been checked against access. A
// caller that shows it relies on Bedrock to apply the filter.
//
// An access that sees nothing is assay.ErrNotFound. An answer that cites documents that access may
// not see is dropped and an error, even if text has received parts of it. Bedrock's format does not
// mark the end of a stream. If a connection is closed normally but too early, between two events,
// the answer cannot be distinguished from a complete one. Failures are *llm.Error.
func (k *Retriever) Answer(ctx context.Context, access assay.Access, g Generation, q Question, text func(string)) (Answer, error) {
	if strings.TrimSpace(q.Text) == "" {
		return Answer{}, fmt.Errorf("ask %s: an empty question: %w", k.Model(), assay.ErrInvalid)
	}
	if _, err := parseARN(g.Model); err != nil {
		return Answer{}, fmt.Errorf("ask %s: the model that answers: %w", k.Model(), err)
	}
	limits, ok := k.config.Sharing.Filter(access)
	if !ok {
		return Answer{}, fmt.Errorf("ask %s: %s: %w", k.Model(), passage.Hidden(k.Model()), assay.ErrNotFound)
	}
	config, notes, err := k.generation(g, q, limits)
	if err != nil {
		return Answer{}, err
	}
	x, err := k.provider.exchange(ctx, k.Model())
	if err != nil {
		return Answer{}, err
	}
	defer x.End()
	r := &managed{x: x, text: text, source: k.source(access), answer: Answer{Notes: notes, Usage: assay.Usage{Calls: 1}}}
	if g.Stream {
		err = k.answerStream(x, r, config, q)
	} else {
		err = k.answerWhole(x, r, config, q)
	}
	if err != nil {
		return Answer{}, err
	}
	return r.finish()
}

// source returns a function that converts references to hits, if access may see them.
func (k *Retriever) source(access assay.Access) func(types.RetrievedReference) (assay.Hit, bool) {
	return func(ref types.RetrievedReference) (assay.Hit, bool) {
		return k.Hit(access, k.passage(ref.Content, ref.Location, ref.Metadata, nil), "")
	}
}

// generation returns the configuration of the generation.
func (k *Retriever) generation(g Generation, q Question, limits assay.Filter) (*types.RetrieveAndGenerateConfiguration, []string, error) {
	vector, notes, err := k.vector(assay.And(k.config.Filter, assay.And(q.Filter, limits)), q.Limit, k.config.Search)
	if err != nil {
		return nil, nil, err
	}
	if q.Limit < 1 {
		vector.NumberOfResults = nil
	}
	if err := g.Guardrail.check(); err != nil {
		return nil, nil, err
	}
	c := &types.KnowledgeBaseRetrieveAndGenerateConfiguration{
		KnowledgeBaseId: &k.id, ModelArn: &g.Model,
		RetrievalConfiguration: &types.KnowledgeBaseRetrievalConfiguration{VectorSearchConfiguration: vector},
	}
	if g.Decompose {
		c.OrchestrationConfiguration = &types.OrchestrationConfiguration{
			QueryTransformationConfiguration: &types.QueryTransformationConfiguration{Type: types.QueryTransformationTypeQueryDecomposition},
		}
	}
	if g.Guardrail.ID != "" || g.MaxTokens > 0 {
		c.GenerationConfiguration = &types.GenerationConfiguration{GuardrailConfiguration: g.Guardrail.retrieval()}
	}
	if g.MaxTokens > 0 {
		c.GenerationConfiguration.InferenceConfig = &types.InferenceConfig{
			TextInferenceConfig: &types.TextInferenceConfig{MaxTokens: aws.Int32(int32(min(g.MaxTokens, 1<<31-1)))},
		}
	}
	return &types.RetrieveAndGenerateConfiguration{Type: types.RetrieveAndGenerateTypeKnowledgeBase, KnowledgeBaseConfiguration: c}, notes, nil
}

// session returns the session ID in the SDK's form.
func (q Question) session() *string {
	if q.Session == "" {
		return nil
	}
	return &q.Session
}

func (k *Retriever) answerWhole(x *exchange, r *managed, c *types.RetrieveAndGenerateConfiguration, q Question) error {
	out, err := x.session.agent.RetrieveAndGenerate(x.Context, &bedrockagentruntime.RetrieveAndGenerateInput{
		Input: &types.RetrieveAndGenerateInput{Text: &q.Text}, RetrieveAndGenerateConfiguration: c, SessionId: q.session(),
	}, func(o *bedrockagentruntime.Options) { o.HTTPClient = x })
	if err != nil {
		return x.Fail(err, k.explain)
	}
	if out.Output == nil || out.Output.Text == nil {
		return x.Fail(errors.New("the reply is not a RetrieveAndGenerate reply: it has no output"), nil)
	}
	r.write(*out.Output.Text)
	r.citations = out.Citations
	r.guard(out.GuardrailAction)
	r.answer.Session = aws.ToString(out.SessionId)
	return nil
}

func (k *Retriever) answerStream(x *exchange, r *managed, c *types.RetrieveAndGenerateConfiguration, q Question) error {
	out, err := x.session.agent.RetrieveAndGenerateStream(x.Context, &bedrockagentruntime.RetrieveAndGenerateStreamInput{
		Input: &types.RetrieveAndGenerateInput{Text: &q.Text}, RetrieveAndGenerateConfiguration: c, SessionId: q.session(),
	}, func(o *bedrockagentruntime.Options) { o.HTTPClient = x })
	if err != nil {
		return x.Fail(err, k.explain)
	}
	events := out.GetStream()
	defer closeStream(events, events.Reader)
	for event := range events.Events() {
		switch e := event.(type) {
		case *types.RetrieveAndGenerateStreamResponseOutputMemberOutput:
			r.write(aws.ToString(e.Value.Text))
		case *types.RetrieveAndGenerateStreamResponseOutputMemberCitation:
			r.cite(e.Value)
		case *types.RetrieveAndGenerateStreamResponseOutputMemberGuardrail:
			r.guard(e.Value.Action)
		}
	}
	r.answer.Session = aws.ToString(out.SessionId)
	return r.ended(events.Err(), k.explain)
}

// A managed is an answer that is being read.
type managed struct {
	x         *exchange
	text      func(string) // receives the text; may be nil
	scrubber  *wire.Scrubber
	tail      string // incomplete character at the end of the text
	source    func(types.RetrievedReference) (assay.Hit, bool)
	answer    Answer
	raw       strings.Builder // the text before redaction, to which citations refer
	citations []types.Citation
}

// write appends to the text.
func (r *managed) write(text string) {
	r.raw.WriteString(text)
	if r.text == nil {
		return
	}
	if r.scrubber == nil {
		r.scrubber = r.x.Errors.Scrubber()
	}
	text = r.tail + text
	n := wholeRunes(text)
	text, r.tail = text[:n], text[n:]
	if ready := r.scrubber.Next(strings.ToValidUTF8(text, "\uFFFD")); ready != "" {
		r.text(ready)
	}
}

// wholeRunes returns the length of text without an incomplete character at its end.
func wholeRunes(text string) int {
	for i := len(text) - 1; i >= 0 && i >= len(text)-utf8.UTFMax; i-- {
		if utf8.RuneStart(text[i]) {
			if utf8.FullRuneInString(text[i:]) {
				break
			}
			return i
		}
	}
	return len(text)
}

// cite adds a citation of a stream, which has one of two forms.
func (r *managed) cite(e types.CitationEvent) {
	//lint:ignore SA1019 Bedrock may send the old form, as it did for years
	if old := e.Citation; old != nil && e.GeneratedResponsePart == nil {
		r.citations = append(r.citations, *old)
		return
	}
	r.citations = append(r.citations, types.Citation{GeneratedResponsePart: e.GeneratedResponsePart, RetrievedReferences: e.RetrievedReferences})
}

func (r *managed) guard(action types.GuadrailAction) {
	if action == types.GuadrailActionIntervened {
		r.answer.Intervened = true
	}
}

// ended returns the error of a stream that ended with err.
func (r *managed) ended(err error, explain func(code, message string) (llm.ErrorKind, string)) error {
	switch {
	case err != nil || r.x.Parent.Err() != nil:
		return r.x.Fail(err, explain)
	case r.x.FailedReading():
		return r.x.Fail(errCut, nil)
	case r.raw.Len() == 0 && !r.answer.Intervened:
		return r.x.Errors.Fail(llm.BrokeOff, "%v", errCut)
	}
	return nil
}

// finish returns the answer after all of it has been read.
func (r *managed) finish() (Answer, error) {
	if r.scrubber != nil {
		if rest := r.scrubber.Next(strings.ToValidUTF8(r.tail, "\uFFFD")) + r.scrubber.Rest(); rest != "" {
			r.text(rest)
		}
	}
	sources := make([][]assay.Hit, len(r.citations))
	for i, c := range r.citations { // before any other check of the answer
		for _, ref := range c.RetrievedReferences {
			h, ok := r.source(ref)
			if !ok {
				return Answer{}, r.x.Errors.Fail(llm.BadReply, "the answer cites documents that the caller may not see; it was dropped")
			}
			if h.Text != "" {
				sources[i] = append(sources[i], h)
			}
		}
	}
	raw := r.raw.String()
	text := strings.ToValidUTF8(raw, "\uFFFD")
	if scrubbed := r.x.Errors.Scrub(text); scrubbed != text || text != raw {
		r.note("the answer contained invalid or secret text, which was removed; its citations were dropped")
		r.answer.Text = scrubbed
		return r.answer, nil
	}
	r.answer.Text = text
	lost, from := 0, 0
	for i, c := range r.citations {
		if len(c.RetrievedReferences) == 0 {
			continue
		}
		cited := Citation{Hits: sources[i]}
		var found bool
		if cited.Start, cited.End, found = locate(text, c.GeneratedResponsePart, from); !found {
			lost++
		} else {
			from = cited.End
		}
		r.answer.Citations = append(r.answer.Citations, cited)
	}
	if lost > 0 {
		r.note(fmt.Sprintf("%d citations could not be matched to a part of the answer", lost))
	}
	if r.answer.Intervened {
		r.note("a guardrail intervened in the answer")
	}
	return r.answer, nil
}

func (r *managed) note(text string) {
	r.answer.Notes = append(r.answer.Notes, r.x.Name+": "+text)
}

// locate returns the byte span of a citation in text. Bedrock returns the part's words and its span
// in characters. Its documentation does not specify whether those are code points or UTF-16 units,
// and whether the end is inclusive; in its examples it is. So the words decide: a span is used only
// if the words are there. Otherwise they are searched after the preceding citation.
//
// Source: AWS, Amazon Bedrock API Reference, Span and TextResponsePart.
func locate(text string, part *types.GeneratedResponsePart, from int) (start, end int, ok bool) {
	if part == nil || part.TextResponsePart == nil {
		return 0, 0, false
	}
	words, span := aws.ToString(part.TextResponsePart.Text), part.TextResponsePart.Span
	if words == "" {
		return 0, 0, false
	}
	if span != nil && span.Start != nil && span.End != nil {
		first, last := int(*span.Start), int(*span.End)
		for _, offset := range []func(string, int) int{runeOffset, utf16Offset, byteOffset} {
			for _, past := range []int{last + 1, last} {
				s, e := offset(text, first), offset(text, past)
				if s >= 0 && s < e && text[s:e] == words {
					return s, e, true
				}
			}
		}
	}
	if i := strings.Index(text[from:], words); i >= 0 {
		return from + i, from + i + len(words), true
	}
	if i := strings.Index(text, words); i >= 0 && strings.LastIndex(text, words) == i {
		return i, i + len(words), true
	}
	return 0, 0, false
}

// runeOffset returns the byte offset of the nth code point of text. It returns the length of text
// for the position after the last one, and -1 beyond that.
func runeOffset(text string, n int) int {
	for i := range text {
		if n == 0 {
			return i
		}
		n--
	}
	if n == 0 {
		return len(text)
	}
	return -1
}

// utf16Offset is like runeOffset, for UTF-16 code units.
func utf16Offset(text string, n int) int {
	for i, r := range text {
		if n == 0 {
			return i
		}
		n -= max(1, utf16.RuneLen(r))
	}
	if n == 0 {
		return len(text)
	}
	return -1
}

// byteOffset returns n if it is a character boundary of text, and -1 otherwise.
func byteOffset(text string, n int) int {
	if n == len(text) || n >= 0 && n < len(text) && utf8.RuneStart(text[n]) {
		return n
	}
	return -1
}
