// Package recorded keeps what language models replied, and plays it back: the same
// request, of the same model, has the same reply, without a network. A [Recorder]
// writes a recording while models are asked, a [Recording] plays it back.
//
// A recording is a file of JSON lines, which may be compressed with gzip once it is
// whole. The first line is its head:
//
//	{"format":"assay completions","version":1,"roles":{"planner":"openai/gpt-4.1"},"models":{"openai/gpt-4.1":{…}}}
//
// roles says which model did which role, models what was known of each (llm.Facts: a
// prompt is cut to its model's window). Every other line is a completion:
//
//	{"key":"9f86…","model":"openai/gpt-4.1","response":{…}}
//	{"key":"60b7…","model":"openai/gpt-4.1","error":{"kind":"refused request","status":400,"message":"…"}}
//
// key is the request's, see [KeyOf]; the request itself is not kept. response is an
// llm.Response. An error is kept where asking again would not help; other failures
// are not. Where a key has several lines, the first counts. A last line that is torn
// is passed over; any other that cannot be read is assay.ErrDamaged. Fields that are
// not known are passed over, another version is assay.ErrInvalid.
//
// Replies quote what the model was shown. Whoever passes a recording on passes that
// on as well.
package recorded

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
)

// The head's values.
const (
	format  = "assay completions"
	version = 1
)

// A head is a recording's first line.
type head struct {
	Format  string               `json:"format"`
	Version int                  `json:"version"`
	Roles   map[string]string    `json:"roles"`
	Models  map[string]llm.Facts `json:"models"`
}

// A completion is every other line.
type completion struct {
	Key      string        `json:"key"`
	Model    string        `json:"model"`
	Response *llm.Response `json:"response,omitempty"`
	Error    *failure      `json:"error,omitempty"`
}

// A failure is an llm.Error as it is kept.
type failure struct {
	Kind    llm.ErrorKind `json:"kind"`
	Status  int           `json:"status,omitempty"`
	Message string        `json:"message,omitempty"`
	Usage   assay.Usage   `json:"usage"`
}

// result is what the completion's call returns.
func (c completion) result() (llm.Response, error) {
	if c.Error == nil {
		return *c.Response, nil
	}
	return llm.Response{}, &llm.Error{Model: c.Model, Kind: c.Error.Kind, Status: c.Error.Status, Message: c.Error.Message, Usage: c.Error.Usage}
}

// KeyOf returns the key of a request to a model: the SHA-256, in hexadecimal digits, of
// the JSON of both. Attempts do not tell requests apart. The error is that of a schema
// or a tool that has no JSON, and is assay.ErrInvalid.
func KeyOf(model string, req llm.Request) (string, error) {
	req.Attempts = 0
	data, err := json.Marshal(struct {
		Model   string      `json:"model"`
		Request llm.Request `json:"request"`
	}{model, req})
	if err != nil {
		return "", fmt.Errorf("request to %s: %w: %w", model, assay.ErrInvalid, err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}
