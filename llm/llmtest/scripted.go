package llmtest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
)

// A Scripted model replies according to a script. It streams its text word by word, estimates
// tokens with llm.EstimateTokens if the script gives none, and records its requests. It is safe for
// concurrent use.
type Scripted struct {
	Name  string    // "" means "scripted/model"
	Known llm.Facts // returned by Facts

	// Reply returns the reply to a request. It may be called concurrently. If nil, every reply is
	// "ok".
	Reply func(req llm.Request) (llm.Response, error)

	mu       sync.Mutex
	requests []llm.Request
}

// Model implements llm.Model.
func (s *Scripted) Model() string { return cmp.Or(s.Name, "scripted/model") }

// Facts implements llm.Described.
func (s *Scripted) Facts() llm.Facts { return s.Known }

// Requests returns the requests so far, in chronological order.
func (s *Scripted) Requests() []llm.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Generate implements llm.Model.
func (s *Scripted) Generate(ctx context.Context, req llm.Request, stream func(llm.Delta)) (llm.Response, error) {
	if err := ctx.Err(); err != nil {
		return llm.Response{}, err
	}
	s.mu.Lock()
	s.requests = append(s.requests, req)
	s.mu.Unlock()
	if s.Reply == nil {
		return spoken(s.Model(), req, llm.Response{Text: "ok"}, stream), nil
	}
	r, err := s.Reply(req)
	if err != nil {
		return llm.Response{}, err
	}
	return spoken(s.Model(), req, r, stream), nil
}

// spoken streams a reply and fills in its missing fields.
func spoken(model string, req llm.Request, r llm.Response, stream func(llm.Delta)) llm.Response {
	if stream != nil {
		for word := range strings.SplitAfterSeq(r.Text, " ") {
			if word != "" {
				stream(llm.Delta{Text: word})
			}
		}
	}
	if r.Finish == "" {
		r.Finish = llm.FinishStop
		if len(r.Calls) > 0 {
			r.Finish = llm.FinishTools
		}
	}
	if (r.Usage == assay.Usage{}) {
		r.Usage = assay.Usage{InputTokens: req.InputTokens(), OutputTokens: llm.EstimateTokens(r.Text)}
	}
	r.Usage.Calls, r.Served = 1, cmp.Or(r.Served, model)
	return r
}

// Say returns a script that replies with text to every request.
func Say(text string) func(llm.Request) (llm.Response, error) {
	return func(llm.Request) (llm.Response, error) { return llm.Response{Text: text}, nil }
}

// Queue returns a script that replies with texts in order. A request after the last is an error of
// kind llm.BadRequest.
func Queue(texts ...string) func(llm.Request) (llm.Response, error) {
	var mu sync.Mutex
	return func(llm.Request) (llm.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		if len(texts) == 0 {
			return llm.Response{}, &llm.Error{Model: "scripted/model", Kind: llm.BadRequest, Message: "the script is at its end", Usage: assay.Usage{Calls: 1}}
		}
		text := texts[0]
		texts = texts[1:]
		return llm.Response{Text: text}, nil
	}
}

// A Rule is a script for requests that contain a string in the system text, the messages or the
// name of the schema.
type Rule struct {
	Has   string
	Reply func(llm.Request) (llm.Response, error)
}

// ByRule returns a script that applies the first rule matching a request. A request without a
// matching rule is an error of kind llm.BadRequest.
func ByRule(rules ...Rule) func(llm.Request) (llm.Response, error) {
	return func(req llm.Request) (llm.Response, error) {
		for _, r := range rules {
			if mentions(req, r.Has) {
				return r.Reply(req)
			}
		}
		return llm.Response{}, &llm.Error{Model: "scripted/model", Kind: llm.BadRequest, Message: "no rule is for this request", Usage: assay.Usage{Calls: 1}}
	}
}

func mentions(req llm.Request, word string) bool {
	if strings.Contains(req.System, word) || req.Schema != nil && strings.Contains(req.Schema.Name, word) {
		return true
	}
	return slices.ContainsFunc(req.Messages, func(m llm.Message) bool { return strings.Contains(m.Text, word) })
}

// An Exchange is a request and its outcome.
type Exchange struct {
	Request  llm.Request  `json:"request"`
	Response llm.Response `json:"response"`
	Error    *llm.Error   `json:"error,omitempty"`
}

// Recorded returns a script that replays exchanges: a request gets the recorded reply of the same
// request. If that was made several times, its replies are used in order, and the last one repeats.
// A request that was not recorded is an error of kind llm.BadRequest. Requests that differ only in
// Attempts are the same.
func Recorded(exchanges []Exchange) func(llm.Request) (llm.Response, error) {
	var mu sync.Mutex
	left := map[string][]Exchange{}
	for _, x := range exchanges {
		k := requestKey(x.Request)
		left[k] = append(left[k], x)
	}
	return func(req llm.Request) (llm.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		k := requestKey(req)
		queue := left[k]
		if len(queue) == 0 {
			return llm.Response{}, &llm.Error{Model: "scripted/model", Kind: llm.BadRequest, Message: "nobody has recorded this request", Usage: assay.Usage{Calls: 1}}
		}
		if len(queue) > 1 {
			left[k] = queue[1:]
		}
		if queue[0].Error != nil {
			return llm.Response{}, queue[0].Error
		}
		return queue[0].Response, nil
	}
}

func requestKey(req llm.Request) string {
	req.Attempts = 0
	data, err := json.Marshal(req)
	if err != nil {
		panic(fmt.Sprintf("llmtest: a request that is no JSON: %v", err)) // a test's invalid schema or tool
	}
	return string(data)
}
