package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
)

// A responseRequest is the body of POST /v1/responses.
type responseRequest struct {
	Model      string          `json:"model"`
	Input      json.RawMessage `json:"input"`
	Previous   string          `json:"previous_response_id,omitempty"`
	Stream     bool            `json:"stream,omitempty"`
	Store      *bool           `json:"store,omitempty"` // nil: true
	Background bool            `json:"background,omitempty"`
	Include    []string        `json:"include,omitempty"`
	Reasoning  struct {
		Effort string `json:"effort,omitempty"`
	} `json:"reasoning,omitzero"`

	skipped []string // names of parameters without effect
}

// decodeBody implements bodyDecoder. See decodeParameters.
func (r *responseRequest) decodeBody(data []byte) (err error) {
	type plain responseRequest
	r.skipped, err = decodeParameters(data, responseParameters, (*plain)(r))
	return err
}

type responseIn struct {
	Key  string          `header:"Idempotency-Key"`
	Body responseRequest `body:"application/json"`
}

// request returns the request for the engine.
func (r *responseRequest) request() (engine.Request, error) {
	c, err := r.conversation()
	if err != nil {
		return engine.Request{}, err
	}
	r.skipped = append(r.skipped, c.skipped...)
	req := engine.Request{Question: c.question, History: c.history, Follows: runOf(r.Previous)}
	if req.Follows == "" && r.Previous != "" {
		return engine.Request{}, &parameterError{param: "previous_response_id", text: fmt.Sprintf("There is no response %q.", r.Previous), kind: assay.ErrNotFound}
	}
	if req.Follows != "" && len(c.history) > 0 {
		return engine.Request{}, invalidParameter("input", "input has earlier turns, and previous_response_id has them too: send only the new question with it")
	}
	if err := askAs(&req, r.Model, "reasoning.effort", r.Reasoning.Effort); err != nil {
		return engine.Request{}, err
	}
	return req, nil
}

// conversation reads the input: a text, or a list of messages and other items.
func (r *responseRequest) conversation() (conversation, error) {
	if len(r.Input) == 0 {
		return conversation{}, invalidParameter("input", "there is no input")
	}
	if typeOf(r.Input) == "string" {
		text, err := textOf("input", r.Input)
		if err == nil && strings.TrimSpace(text) == "" {
			err = invalidParameter("input", "the question is empty")
		}
		return conversation{question: text}, err
	}
	var items []json.RawMessage
	if err := json.Unmarshal(r.Input, &items); err != nil {
		return conversation{}, invalidParameter("input", "input: %v", err)
	}
	return conversationOf("input", items)
}

// responsePrefix precedes the ID of a run in that of its response.
const responsePrefix = "resp_"

func responseID(run string) string { return responsePrefix + run }

func runOf(response string) string { return strings.TrimPrefix(response, responsePrefix) }

// respond answers the last message of an input.
func respond(x *exchange, in responseIn) error {
	r := in.Body
	req, err := r.request()
	if err != nil {
		return err
	}
	req.IdempotencyKey = in.Key
	id, err := x.begin(req)
	if err != nil {
		return err
	}
	isKept := r.Store == nil || *r.Store || r.Background
	if !isKept && in.Key == "" {
		defer x.abandon(id)
	}
	o := newResponse(id, req)
	o.Model, o.CreatedAt, o.Background = r.Model, time.Now().Unix(), r.Background
	switch {
	case r.Stream:
		return o.stream(x, r.skipped)
	case r.Background:
		return x.reply(o)
	}
	answer, err := final(x.session.Follow(x.r.Context(), id, -1))
	if err != nil {
		return err
	}
	o.finish(x, answer, r.skipped)
	return x.reply(o)
}

// A response is the object of the responses interface.
type response struct {
	ID                string            `json:"id"`
	Object            string            `json:"object"`
	CreatedAt         int64             `json:"created_at"`
	Status            string            `json:"status"`
	Background        bool              `json:"background"`
	Error             *responseError    `json:"error"`
	IncompleteDetails *incompleteReason `json:"incomplete_details"`
	Instructions      *string           `json:"instructions"`
	MaxOutputTokens   *int              `json:"max_output_tokens"`
	Model             string            `json:"model"`
	Output            []any             `json:"output"` // a fileSearch and an outputMessage
	ParallelToolCalls bool              `json:"parallel_tool_calls"`
	Previous          *string           `json:"previous_response_id"`
	Store             bool              `json:"store"` // true: every run is in the journal
	Temperature       *float64          `json:"temperature"`
	ToolChoice        string            `json:"tool_choice"`
	Tools             []any             `json:"tools"`
	TopP              *float64          `json:"top_p"`
	Truncation        string            `json:"truncation"`
	Usage             *responseUsage    `json:"usage"`
	Metadata          map[string]string `json:"metadata"`

	run string
}

type responseError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

type incompleteReason struct {
	Reason string `json:"reason"`
}

// A responseUsage counts the tokens of a run's models.
type responseUsage struct {
	InputTokens   int            `json:"input_tokens"`
	InputDetails  map[string]int `json:"input_tokens_details"`
	OutputTokens  int            `json:"output_tokens"`
	OutputDetails map[string]int `json:"output_tokens_details"`
	TotalTokens   int            `json:"total_tokens"`
}

// A fileSearch is the item with the searches of a run and the words that its answer cites.
type fileSearch struct {
	Type    string       `json:"type"`
	ID      string       `json:"id"`
	Status  string       `json:"status"`
	Queries []string     `json:"queries"`
	Results []fileResult `json:"results"`
}

// A fileResult is a quote that supports a claim.
type fileResult struct {
	FileID     string         `json:"file_id"` // document ID
	Filename   string         `json:"filename"`
	Score      float64        `json:"score"` // of the claim, in [0, 1]
	Text       string         `json:"text"`  // the quote
	Attributes map[string]any `json:"attributes"`
}

// An outputMessage is the item with the answer.
type outputMessage struct {
	Type    string       `json:"type"`
	ID      string       `json:"id"`
	Status  string       `json:"status"`
	Role    string       `json:"role"`
	Content []outputText `json:"content"`
}

// An outputText is the only part of an outputMessage.
type outputText struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	Annotations []any  `json:"annotations"` // a urlAnnotation or fileAnnotation each
	LogProbs    []any  `json:"logprobs"`
}

type urlAnnotation struct {
	Type string `json:"type"`
	urlCitation
}

// A fileAnnotation is a document that is cited after the code point Index.
type fileAnnotation struct {
	Type     string `json:"type"`
	FileID   string `json:"file_id"`
	Filename string `json:"filename"`
	Index    int    `json:"index"`
}

// newResponse returns the response of a run that has no answer yet.
func newResponse(run string, req engine.Request) *response {
	o := &response{
		ID: responseID(run), Object: "response", Status: "in_progress", Model: modelOf(req).String(), Output: []any{}, Store: true,
		ParallelToolCalls: true, ToolChoice: "auto", Tools: []any{}, Truncation: "disabled", Metadata: map[string]string{"assay_run": run}, run: run,
	}
	if req.Follows != "" {
		previous := responseID(req.Follows)
		o.Previous = &previous
	}
	return o
}

// finish adds an answer.
func (o *response) finish(x *exchange, a assay.Answer, skipped []string) {
	o.Status = "completed"
	switch {
	case finishReason(a) == "content_filter":
		o.Status, o.IncompleteDetails = "incomplete", &incompleteReason{"content_filter"}
	case a.Stop == assay.StopCancelled:
		o.Status = "cancelled"
	}
	o.Output = []any{o.search(a), o.message(x, a)}
	o.Metadata = metadataOf(a, skipped)
	u := a.Usage
	o.Usage = &responseUsage{
		InputTokens: u.InputTokens, InputDetails: map[string]int{"cached_tokens": 0},
		OutputTokens: u.OutputTokens, OutputDetails: map[string]int{"reasoning_tokens": 0}, TotalTokens: u.InputTokens + u.OutputTokens,
	}
}

// search returns the item with the searches of an answer and its quotes, each once.
func (o *response) search(a assay.Answer) fileSearch {
	item := fileSearch{Type: "file_search_call", ID: "fs_" + o.run, Status: "completed", Queries: []string{}, Results: []fileResult{}}
	asked := map[string]bool{}
	for _, s := range a.Searched {
		if !asked[s.Query] {
			asked[s.Query] = true
			item.Queries = append(item.Queries, s.Query)
		}
	}
	seen := map[string]bool{}
	for _, c := range a.Citations {
		key := fmt.Sprintf("%d %d %d", c.Number, c.Start, c.End)
		if seen[key] {
			continue
		}
		seen[key] = true
		score := 0.0
		if c.Claim >= 0 && c.Claim < len(a.Claims) {
			score = a.Claims[c.Claim].Score
		}
		item.Results = append(item.Results, fileResult{FileID: cmp.Or(c.Document, c.URI), Filename: titleOf(c), Score: score, Text: c.Quote, Attributes: attributesOf(c)})
	}
	return item
}

// attributesOf returns where a quote is. OpenAI's attributes are texts of 512 characters at most,
// numbers and booleans.
func attributesOf(c assay.Citation) map[string]any {
	m := map[string]any{"n": c.Number, "uri": c.URI, "version": c.Version, "start": c.Start, "end": c.End}
	if c.Page > 0 {
		m["page"] = c.Page
	}
	if c.Line > 0 {
		m["line"] = c.Line
	}
	if c.Provenance != "" {
		m["provenance"] = string(c.Provenance)
	}
	if c.Collection != "" {
		m["collection"] = c.Collection
	}
	if c.Origin != "" {
		m["origin"] = string(c.Origin)
	}
	return m
}

func (o *response) message(x *exchange, a assay.Answer) outputMessage {
	part := outputText{Type: "output_text", Text: openaiText(a), Annotations: []any{}, LogProbs: []any{}}
	for _, c := range x.urlCitations(a) {
		part.Annotations = append(part.Annotations, urlAnnotation{"url_citation", c})
	}
	seen := map[string]bool{}
	for _, c := range citedClaims(a) {
		if id := c.citation.Document; id != "" && !seen[id] {
			seen[id] = true
			part.Annotations = append(part.Annotations, fileAnnotation{"file_citation", id, titleOf(c.citation), c.end})
		}
	}
	return outputMessage{Type: "message", ID: "msg_" + o.run, Status: messageStatus(o.Status), Role: "assistant", Content: []outputText{part}}
}

// messageStatus returns the status of the message of a response.
func messageStatus(response string) string {
	if response == "cancelled" {
		return "incomplete"
	}
	return response
}

type responseIDIn struct {
	ID string `path:"id"`
}

type showResponseIn struct {
	ID       string   `path:"id"`
	Include  []string `query:"include"`
	Included []string `query:"include[]"`
}

// showResponse shows the response of a run.
func showResponse(x *exchange, in showResponseIn) error {
	o, err := x.responseOf(in.ID)
	if err != nil {
		return err
	}
	return x.reply(o)
}

// responseOf returns the response of a run as it is in the journal.
func (x *exchange) responseOf(id string) (*response, error) {
	noteAsked(x.r.Context(), runOf(id))
	r, _, err := x.session.Run(x.r.Context(), runOf(id))
	if err != nil {
		return nil, err
	}
	var req engine.Request
	if r.State == assay.RunErased || json.Unmarshal(r.Request, &req) != nil {
		return nil, fmt.Errorf("response %q: %w", id, assay.ErrNotFound)
	}
	o := newResponse(r.ID, req)
	o.CreatedAt = r.Created.Unix()
	switch {
	case r.Answer != nil:
		o.finish(x, *r.Answer, nil)
	case r.State == assay.RunFailed:
		o.Status, o.Error = "failed", &responseError{"server_error", r.Error}
	case !r.Live: // it waits for its turn, or was interrupted
		o.Status = "queued"
	}
	return o, nil
}

// A deletedResponse confirms the deletion of a response.
type deletedResponse struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Deleted bool   `json:"deleted"`
}

// deleteResponse erases the texts of a run.
func deleteResponse(ctx context.Context, s *engine.Session, in responseIDIn) (deletedResponse, error) {
	err := s.DeleteRun(ctx, runOf(in.ID), "DELETE /v1/responses")
	return deletedResponse{ID: in.ID, Object: "response", Deleted: true}, err
}

type cancelResponseIn struct {
	ID   string          `path:"id"`
	Body json.RawMessage `body:"application/json" optional:"true"` // has no effect
}

// cancelResponse ends the run of a response, and shows it.
func cancelResponse(x *exchange, in cancelResponseIn) error {
	if err := x.session.Cancel(x.r.Context(), runOf(in.ID)); err != nil {
		return err
	}
	o, err := x.responseOf(in.ID)
	if err != nil {
		return err
	}
	if o.Status != "completed" { // it is about to end with what is verified
		o.Status = "cancelled"
	}
	return x.reply(o)
}
