package client

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/secret"
)

// An Error is a response that is not a success. It wraps its kind, which is an error of package assay
// or of package context, if the server named one.
type Error struct {
	Method, Path string // of the request
	Status       int    // HTTP status
	Problem      Problem

	// RetryAfter is the time after which another attempt can help; 0: not known.
	RetryAfter time.Duration

	kind error
}

// Error returns the request, the status and the detail.
func (e *Error) Error() string {
	text := fmt.Sprintf("client: %s %s: %d %s", e.Method, e.Path, e.Status, http.StatusText(e.Status))
	if e.Problem.Detail != "" {
		text += ": " + e.Problem.Detail
	}
	return text
}

// Unwrap returns the kind of the error, or nil.
func (e *Error) Unwrap() error { return e.kind }

// maxProblem is the most bytes of problem details.
const maxProblem = 1 << 20

// refused returns the error for a response that is not a success.
func (q *call) refused(resp *http.Response, credential secret.Secret) error {
	var p Problem
	data, err := readAll(resp.Body, maxProblem)
	media, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	if err == nil && media == "application/problem+json" {
		err = json.Unmarshal(data, &p)
	}
	if err != nil { // the status says enough
		p = Problem{}
	}
	e := q.problem(p, resp.StatusCode, credential)
	e.RetryAfter = retryAfter(resp.Header, time.Now())
	return e
}

// problem returns the error for problem details.
func (q *call) problem(p Problem, status int, credential secret.Secret) *Error {
	p.Detail = secret.Redact(p.Detail, credential)
	return &Error{Method: q.method, Path: q.path, Status: status, Problem: p, kind: kindOf(p, status)}
}

// kindOf returns the kind of a problem: that of its type, or else the only kind with its status. nil:
// none.
func kindOf(p Problem, status int) error {
	_, name, typed := strings.Cut(p.Type, "/problems/")
	var found []error
	for _, kind := range assay.Kinds() {
		if typed && kind.Name == name || !typed && kind.Status == status {
			found = append(found, kind.Err)
		}
	}
	if len(found) != 1 {
		return nil
	}
	return found[0]
}
