package llmtest

import (
	"encoding/json"
	"net/http"
	"testing"
)

// JSON returns v as JSON. It panics if v cannot be encoded, which is a bug in the test.
func JSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic("llmtest: " + err.Error())
	}
	return data
}

// Document returns a reply of one JSON document. Status 0 means 200.
func Document(status int, v any) Body {
	return Body{Status: status, Type: "application/json", Parts: [][]byte{JSON(v)}}
}

// JSON returns the values of the vector as they appear in a reply.
func (v Indexed) JSON() json.RawMessage {
	if v.Values != "" {
		return json.RawMessage(v.Values)
	}
	return JSON(v.Vector)
}

// Read decodes the JSON body of a request into in. It checks that the request is a POST to path
// with Canary as the bearer token and as X-Gateway-Key.
func Read(t testing.TB, r *http.Request, path string, body []byte, in any) {
	t.Helper()
	if err := json.Unmarshal(body, in); err != nil {
		t.Fatalf("the request is not of the format: %v", err)
	}
	if r.Method != http.MethodPost || r.URL.Path != path || r.Header.Get("Authorization") != "Bearer "+Canary || r.Header.Get("X-Gateway-Key") != Canary {
		t.Errorf("%s %s with the headers %v", r.Method, r.URL.Path, r.Header)
	}
}
