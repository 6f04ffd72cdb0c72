package llmtest

import (
	"encoding/json"
	"net/http"
	"testing"
)

// JSON returns v as JSON. It panics where v cannot be encoded, which is a mistake of
// the test's author.
func JSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic("llmtest: " + err.Error())
	}
	return data
}

// Document returns a reply that is one JSON document. The status 0 is 200.
func Document(status int, v any) Body {
	return Body{Status: status, Type: "application/json", Parts: [][]byte{JSON(v)}}
}

// JSON returns the values of the vector as they stand in a reply.
func (v Indexed) JSON() json.RawMessage {
	if v.Values != "" {
		return json.RawMessage(v.Values)
	}
	return JSON(v.Vector)
}

// Read reads the JSON of a request, and checks that it was posted to a path with Canary
// as bearer token and as X-Gateway-Key.
func Read(t testing.TB, r *http.Request, path string, body []byte, in any) {
	t.Helper()
	if err := json.Unmarshal(body, in); err != nil {
		t.Fatalf("the request is not of the format: %v", err)
	}
	if r.Method != http.MethodPost || r.URL.Path != path || r.Header.Get("Authorization") != "Bearer "+Canary || r.Header.Get("X-Gateway-Key") != Canary {
		t.Errorf("%s %s with the headers %v", r.Method, r.URL.Path, r.Header)
	}
}
