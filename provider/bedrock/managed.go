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
	"github.com/assay-rag/assay/provider/internal/wire"
)

// An Answer is what a managed service of Bedrock makes of a question. Nobody has
// verified it.
type Answer struct {
	Text string

	// Citations are the parts of the text that Bedrock gives sources for, in its order.
	Citations []Citation

	Session    string // to go on with the conversation
	Intervened bool   // a guardrail has: Text is what it says instead, or what it left
	Notes      []string
	Usage      assay.Usage // calls; Bedrock does not say how many tokens they took
}

// A Citation ties the bytes [Start, End) of an answer's text to what was retrieved.
// Where the part that Bedrock names is not found in the text, both are 0, and the
// answer's notes say so.
type Citation struct {
	Start, End int
	Hits       []assay.Hit
}

// A Generation says how a knowledge base answers questions itself.
type Generation struct {
	Model     string // ARN of the foundation model or inference profile that writes
	Decompose bool   // questions are taken apart and searched in parts (query decomposition)
	Guardrail Guardrail
	MaxTokens int  // of the answer; 0: Bedrock's default
	Stream    bool // the answer is asked for as a stream
}

// A Question is what is asked of a managed service.
type Question struct {
	Text    string
	Filter  assay.Filter // of documents; the zero Filter keeps all
	Limit   int          // passages to answer from; 0: Bedrock's default
	Session string       // of an earlier Answer; empty: a new conversation
}

// Answer has the knowledge base answer a question from what access may see, in one call
// (RetrieveAndGenerate). text, where it is not nil and the answer is a stream, is told
// the text as it arrives: before the citations, and so before anybody has looked at what
// it cites. Whoever shows it trusts Bedrock to keep to the filter.
//
// An access that sees nothing is assay.ErrNotFound. An answer that cites what access
// may not see is dropped and an error, though text may have been told of it. The end of a stream has no mark of its own in
// Bedrock's format: one whose connection is closed between two events, in good order
// and too early, cannot be told from a whole one. Failures are *llm.Error.
func (k *Retriever) Answer(ctx context.Context, access assay.Access, g Generation, q Question, text func(string)) (Answer, error) {
	if strings.TrimSpace(q.Text) == "" {
		return Answer{}, fmt.Errorf("ask %s: an empty question: %w", k.name, assay.ErrInvalid)
	}
	if _, err := parseARN(g.Model); err != nil {
		return Answer{}, fmt.Errorf("ask %s: the model that answers: %w", k.name, err)
	}
	limits, ok := k.config.Sharing.filter(access)
	if !ok {
		return Answer{}, fmt.Errorf("ask %s: %s: %w", k.name, hidden(k.name), assay.ErrNotFound)
	}
	config, notes, err := k.generation(g, q, limits)
	if err != nil {
		return Answer{}, err
	}
	x, err := k.provider.exchange(ctx, k.name)
	if err != nil {
		return Answer{}, err
	}
	defer x.end()
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

// source returns what makes hits of references that access may see.
func (k *Retriever) source(access assay.Access) func(types.RetrievedReference) (assay.Hit, bool) {
	return func(ref types.RetrievedReference) (assay.Hit, bool) {
		doc, page := k.document(ref.Content, ref.Location, ref.Metadata)
		if !access.Allows(doc.ACL) {
			return assay.Hit{}, false
		}
		if doc.Text != "" {
			k.keep(doc)
		}
		return k.hit(doc, page, nil, ""), true
	}
}

// generation returns how Bedrock is to answer.
func (k *Retriever) generation(g Generation, q Question, limits assay.Filter) (*types.RetrieveAndGenerateConfiguration, []string, error) {
	vector, notes, err := k.vector(assay.And(q.Filter, limits), q.Limit, k.config.Search)
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

// session returns an ID as the SDK wants it.
func (q Question) session() *string {
	if q.Session == "" {
		return nil
	}
	return &q.Session
}

func (k *Retriever) answerWhole(x *exchange, r *managed, c *types.RetrieveAndGenerateConfiguration, q Question) error {
	out, err := x.session.agent.RetrieveAndGenerate(x.ctx, &bedrockagentruntime.RetrieveAndGenerateInput{
		Input: &types.RetrieveAndGenerateInput{Text: &q.Text}, RetrieveAndGenerateConfiguration: c, SessionId: q.session(),
	}, func(o *bedrockagentruntime.Options) { o.HTTPClient = x })
	if err != nil {
		return x.fail(err, k.explain)
	}
	if out.Output == nil || out.Output.Text == nil {
		return x.fail(errors.New("the reply is not one of RetrieveAndGenerate: it has no output"), nil)
	}
	r.write(*out.Output.Text)
	r.citations = out.Citations
	r.guard(out.GuardrailAction)
	r.answer.Session = aws.ToString(out.SessionId)
	return nil
}

func (k *Retriever) answerStream(x *exchange, r *managed, c *types.RetrieveAndGenerateConfiguration, q Question) error {
	out, err := x.session.agent.RetrieveAndGenerateStream(x.ctx, &bedrockagentruntime.RetrieveAndGenerateStreamInput{
		Input: &types.RetrieveAndGenerateInput{Text: &q.Text}, RetrieveAndGenerateConfiguration: c, SessionId: q.session(),
	}, func(o *bedrockagentruntime.Options) { o.HTTPClient = x })
	if err != nil {
		return x.fail(err, k.explain)
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

// A managed is an answer as it is being read.
type managed struct {
	x         *exchange
	text      func(string) // is told the text; nil: nobody is
	scrubber  *wire.Scrubber
	tail      string // the beginning of a character whose end has not come yet
	source    func(types.RetrievedReference) (assay.Hit, bool)
	answer    Answer
	raw       strings.Builder // the text as Bedrock counts it
	citations []types.Citation
}

// write adds to the text.
func (r *managed) write(text string) {
	r.raw.WriteString(text)
	if r.text == nil {
		return
	}
	if r.scrubber == nil {
		r.scrubber = r.x.errors.Scrubber()
	}
	text = r.tail + text
	n := wholeRunes(text)
	text, r.tail = text[:n], text[n:]
	if ready := r.scrubber.Next(strings.ToValidUTF8(text, "\uFFFD")); ready != "" {
		r.text(ready)
	}
}

// wholeRunes returns how many bytes of text there are before a character at its end of
// which a part is missing.
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

// cite adds a citation of a stream, which comes in one of two forms.
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

// ended returns the error of a stream that has ended in err.
func (r *managed) ended(err error, explain func(code, message string) (llm.ErrorKind, string)) error {
	switch {
	case err != nil || r.x.parent.Err() != nil:
		return r.x.fail(err, explain)
	case r.x.failedReading():
		return r.x.fail(errCut, nil)
	case r.raw.Len() == 0 && !r.answer.Intervened:
		return r.x.errors.Fail(llm.BrokeOff, "%v", errCut)
	}
	return nil
}

// finish returns the answer, once all of it has been read.
func (r *managed) finish() (Answer, error) {
	if r.scrubber != nil {
		if rest := r.scrubber.Next(strings.ToValidUTF8(r.tail, "\uFFFD")) + r.scrubber.Rest(); rest != "" {
			r.text(rest)
		}
	}
	sources := make([][]assay.Hit, len(r.citations))
	for i, c := range r.citations { // whatever else is wrong with the answer
		for _, ref := range c.RetrievedReferences {
			h, ok := r.source(ref)
			if !ok {
				return Answer{}, r.x.errors.Fail(llm.BadReply, "the answer cites what whoever asks may not see; it is dropped")
			}
			if h.Text != "" {
				sources[i] = append(sources[i], h)
			}
		}
	}
	raw := r.raw.String()
	text := strings.ToValidUTF8(raw, "\uFFFD")
	if scrubbed := r.x.errors.Scrub(text); scrubbed != text || text != raw {
		r.note("the answer held bytes that must not be shown; its citations were dropped")
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
		r.note(fmt.Sprintf("of %d citations it is not clear which part of the answer they are for", lost))
	}
	if r.answer.Intervened {
		r.note("a guardrail has intervened in the answer")
	}
	return r.answer, nil
}

func (r *managed) note(text string) {
	r.answer.Notes = append(r.answer.Notes, r.x.name+": "+text)
}

// locate returns the byte span of text that a citation is for. Bedrock gives the part's
// words, and its span in characters; whether those are code points or UTF-16 units,
// and whether the end is a part of it, its documentation does not say, and its
// examples count the last one in. The words decide: a span counts only where they
// stand, else they are looked for behind the citation before.
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

// runeOffset returns the byte offset of the nth code point of text, its length for the
// one behind the last, and -1 where there are fewer.
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

// utf16Offset is runeOffset for UTF-16 code units.
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

// byteOffset returns n where a character of text begins or ends there, else -1.
func byteOffset(text string, n int) int {
	if n == len(text) || n >= 0 && n < len(text) && utf8.RuneStart(text[n]) {
		return n
	}
	return -1
}
