// Package recorded records the replies of language models and replays them without a network: the
// same request to the same model gets the same reply. A [Recorder] writes a recording while models
// are called, a [Recording] replays it.
//
// A recording is a file of JSON lines, which may be compressed with gzip once it is complete. The
// first line is its head:
//
//	{"format":"assay completions","version":1,"roles":{"planner":"openai/gpt-4.1"},"models":{"openai/gpt-4.1":{…}}}
//
// roles maps each role to its model, and models maps each model to its llm.Facts, since prompts are
// cut to the model's window. Every other line is a completion:
//
//	{"key":"9f86…","model":"openai/gpt-4.1","response":{…}}
//	{"key":"60b7…","model":"openai/gpt-4.1","error":{"kind":"refused request","status":400,"message":"…"}}
//
// key is the request's, see [KeyOf]; the request itself is not recorded. response is an
// llm.Response. Errors are recorded only if a retry would not help. If several lines have the same
// key, the first counts. A torn last line is skipped; any other line that cannot be read is
// assay.ErrDamaged. Unknown fields are ignored; another version is assay.ErrInvalid.
//
// Replies quote the model's input. Sharing a recording shares those quotes as well.
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

// A failure is the recorded form of an llm.Error.
type failure struct {
	Kind    llm.ErrorKind `json:"kind"`
	Status  int           `json:"status,omitempty"`
	Message string        `json:"message,omitempty"`
	Usage   assay.Usage   `json:"usage"`
}

// result returns the result of the completion's call.
func (c completion) result() (llm.Response, error) {
	if c.Error == nil {
		return *c.Response, nil
	}
	return llm.Response{}, &llm.Error{Model: c.Model, Kind: c.Error.Kind, Status: c.Error.Status, Message: c.Error.Message, Usage: c.Error.Usage}
}

// KeyOf returns the key of a request to a model: the SHA-256, in hexadecimal digits, of the JSON of
// both. Requests that differ only in Attempts have the same key. A schema or tool that cannot be
// encoded as JSON is assay.ErrInvalid.
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
