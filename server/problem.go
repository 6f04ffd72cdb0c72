package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/limit"
	"github.com/assay-rag/assay/run"
	"github.com/assay-rag/assay/source"
)

// A Problem is an error in the form of RFC 9457.
type Problem struct {
	Type   string `json:"type"`   // "/problems/" and the Name of a ProblemKind
	Title  string `json:"title"`  // of the type
	Status int    `json:"status"` // HTTP status
	Detail string `json:"detail,omitempty"`

	Errors     []FieldProblem `json:"errors,omitempty"`      // parts of the request that are wrong
	RetryAfter int64          `json:"retry_after,omitempty"` // seconds to wait before another attempt, at least
	Limit      *limit.Error   `json:"limit,omitempty"`       // the limit that is reached
	Run        string         `json:"run,omitempty"`         // the run that failed
	Resumable  bool           `json:"resumable,omitempty"`   // the run can be resumed
	Reason     string         `json:"reason,omitempty"`      // why a document cannot be used, as in a list of failed documents
	Step       string         `json:"step,omitempty"`        // path of the step at which a run diverged, or from which it can be forked
}

// A ProblemKind is a kind of Problem.
type ProblemKind struct {
	Name   string `json:"name"`
	Status int    `json:"status"`
	Title  string `json:"title"`
	Means  string `json:"means"` // what a client can do
}

// Errors of HTTP itself.
var (
	errMethod        = errors.New("the method is not allowed here")
	errMediaType     = errors.New("the form of the body is not supported")
	errNotAcceptable = errors.New("there is no such form of the response")
	errRange         = errors.New("the range is not in the text")
)

// httpKinds are the kinds of errors that are not those of package assay.
var httpKinds = []struct {
	is   func(error) bool
	kind ProblemKind
}{
	{isTooLarge, ProblemKind{"too_large", http.StatusRequestEntityTooLarge, "Body too large", "The body, or a file in it, is larger than the limit that the detail names."}},
	{isUnreadable, ProblemKind{"unreadable", http.StatusUnprocessableEntity, "Document cannot be used", "The document arrived and cannot be parsed, or lacks an ACL that its collection requires. reason says why."}},
	{isSlow, ProblemKind{"slow", http.StatusRequestTimeout, "Request too slow", "The body did not arrive in time. Send it again."}},
	{is(fs.ErrClosed), ProblemKind{"closing", http.StatusServiceUnavailable, "Server is stopping", "The server is being stopped. A run that it drove goes on after its restart."}},
	{is(errMethod), ProblemKind{"method", http.StatusMethodNotAllowed, "Method not allowed", "The header Allow lists the methods of this path."}},
	{is(errMediaType), ProblemKind{"media_type", http.StatusUnsupportedMediaType, "Unsupported media type", "Send the Content-Type that the detail names, in UTF-8 and without Content-Encoding."}},
	{is(errNotAcceptable), ProblemKind{"not_acceptable", http.StatusNotAcceptable, "Not acceptable", "Accept one of the media types that the detail names."}},
	{is(errRange), ProblemKind{"range", http.StatusRequestedRangeNotSatisfiable, "Range not satisfiable", "The offsets are outside the text, or inside a character."}},
}

func is(target error) func(error) bool { return func(err error) bool { return errors.Is(err, target) } }

func isTooLarge(err error) bool {
	_, is := errors.AsType[*http.MaxBytesError](err)
	upload, ok := errors.AsType[*engine.UploadError](err)
	return is || ok && upload.Reason == source.TooLarge
}

func isUnreadable(err error) bool {
	_, is := errors.AsType[*engine.UploadError](err)
	return is
}

func isSlow(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// internalKind is the kind of all failures of the server itself.
var internalKind = ProblemKind{"internal", http.StatusInternalServerError, "Internal error", "The server failed. Its log has the reason."}

// titles and meanings of the kinds of package assay.
var meanings = map[string][2]string{
	"interrupted":     {"Interrupted", "The client was gone before the answer."},
	"cancelled":       {"Run was cancelled", "The owner of the run cancelled it."},
	"reused":          {"Idempotency key reused", "The Idempotency-Key was used for another request. Use a new one."},
	"invalid":         {"Invalid request", "The request is wrong. errors names the parts, if they are known. A retry cannot help."},
	"suspended":       {"Suspended", "It waits for a person's decision."},
	"locked":          {"Locked", "Another process or request writes the data. Try again after Retry-After."},
	"leased":          {"Run is active", "The run is driven elsewhere. Follow its events, or try again after Retry-After."},
	"diverged":        {"Diverged", "A replayed or resumed run did not take the recorded path. step names the place."},
	"read_only":       {"Read-only", "This server cannot write the data."},
	"full":            {"Disk full", "The server's disk is full. What was acknowledged before is kept."},
	"not_found":       {"Not found", "It does not exist for this credential."},
	"changed":         {"Precondition failed", "It is not the version that If-Match or If-None-Match names. Read it again."},
	"budget":          {"Budget exhausted", "A step would exceed the rest of the run's budget."},
	"deadline":        {"Deadline exceeded", "The run's time is spent."},
	"unavailable":     {"Service unavailable", "A model's provider, or another service that it needs, failed."},
	"unauthenticated": {"Not authenticated", "The credential is missing, expired, revoked or not valid here."},
	"forbidden":       {"Not allowed", "The credential is valid and lacks the right."},
	"quota":           {"Limit reached", "A limit is reached. limit names it. Try again after Retry-After."},
	"busy":            {"Busy", "The server has no room for more work of this kind. Try again after Retry-After."},
	"stopped":         {"Stopped", "An administrator has stopped the tenant or all runs."},
	"timeout":         {"Timeout", "It took too long."},
}

// ProblemKinds returns the kinds of Problem by status, then name.
func ProblemKinds() []ProblemKind {
	kinds := []ProblemKind{internalKind}
	for _, k := range assay.Kinds() {
		if k.Status != http.StatusInternalServerError {
			kinds = append(kinds, kindOf(k))
		}
	}
	for _, k := range httpKinds {
		kinds = append(kinds, k.kind)
	}
	slices.SortFunc(kinds, func(a, b ProblemKind) int {
		return cmp.Or(cmp.Compare(a.Status, b.Status), strings.Compare(a.Name, b.Name))
	})
	return kinds
}

func kindOf(k assay.Kind) ProblemKind {
	m := meanings[k.Name]
	return ProblemKind{Name: k.Name, Status: k.Status, Title: m[0], Means: m[1]}
}

// problemKindOf returns the kind of an error.
func problemKindOf(err error) ProblemKind {
	for _, k := range httpKinds {
		if k.is(err) {
			return k.kind
		}
	}
	k, ok := assay.KindOf(err)
	if !ok || k.Status == http.StatusInternalServerError {
		return internalKind
	}
	return kindOf(k)
}

// retryBusy is how long a client should wait for another writer.
const retryBusy = time.Second

// retryAfter returns how long to wait before another attempt; 0: not known.
func retryAfter(err error) time.Duration {
	if reached, ok := limit.AsError(err); ok {
		return reached.RetryAfter
	}
	if busy, ok := errors.AsType[*engine.BusyError](err); ok {
		return busy.RetryAfter
	}
	if full, ok := errors.AsType[*engine.QueueError](err); ok {
		return full.RetryAfter
	}
	if errors.Is(err, assay.ErrBusy) || errors.Is(err, assay.ErrLocked) || errors.Is(err, fs.ErrClosed) || errors.Is(err, assay.ErrLeased) {
		return retryBusy
	}
	return 0
}

// problem returns the problem details of an error. Those of the server's own failures have no detail,
// which is logged.
func (x *exchange) problem(err error) Problem {
	kind := problemKindOf(err)
	p := Problem{Type: "/problems/" + kind.Name, Title: kind.Title, Status: kind.Status, Detail: err.Error()}
	p.RetryAfter = int64(math.Ceil(retryAfter(err).Seconds()))
	if wrong, ok := errors.AsType[fieldErrors](err); ok {
		p.Errors = wrong
	}
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		p.Detail = fmt.Sprintf("the body is larger than %d bytes", large.Limit)
	}
	if reached, ok := limit.AsError(err); ok {
		p.Limit = reached
	}
	if run, ok := errors.AsType[*engine.RunError](err); ok {
		p.Run, p.Resumable = run.Run, run.Resumable
	}
	if upload, ok := errors.AsType[*engine.UploadError](err); ok {
		p.Reason = string(upload.Reason)
	}
	if d, ok := errors.AsType[*run.DivergenceError](err); ok {
		p.Step = d.Path
	}
	if fork, ok := errors.AsType[*engine.ForkError](err); ok {
		p.Step = fork.Step
	}
	if errors.Is(err, context.Canceled) && x.r.Context().Err() == nil { // the client still waits
		p.Status = http.StatusConflict
	}
	if hidesDetail(kind) {
		x.server.config.Log.ErrorContext(x.r.Context(), "request failed", "route", x.route.Name, "error", err)
		p.Detail = ""
	}
	return p
}

// hidesDetail reports whether the text of an error may name files of the server.
func hidesDetail(k ProblemKind) bool {
	return k.Status == http.StatusInternalServerError || k.Name == "full" || k.Name == "read_only"
}

// fail writes the response for an error.
func (x *exchange) fail(err error) {
	if x.sent { // the client reads a broken body
		x.server.config.Log.InfoContext(x.r.Context(), "response broken off", "route", x.route.Name, "error", err)
		return
	}
	if x.route.fail != nil {
		x.route.fail(x, err)
		return
	}
	p := x.problem(err)
	data, err2 := json.Marshal(p)
	if err2 != nil {
		panic(err2) // a Problem can be encoded
	}
	h := x.w.Header()
	for _, name := range []string{"Content-Encoding", "Content-Length", "Content-Disposition", "ETag", "Last-Modified", "Location"} {
		h.Del(name) // of the response that was begun
	}
	h.Set("Content-Type", typeProblem)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	x.challenge(err, p.Status)
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(p.RetryAfter, 10))
	}
	if x.r.ProtoMajor == 1 && !x.bodyEnded() {
		h.Set("Connection", "close") // or the response would wait for the rest of the body
	}
	x.w.WriteHeader(p.Status)
	_, _ = x.w.Write(append(data, '\n')) // the client may be gone
}

// bodyEnded reports whether the whole body was read.
func (x *exchange) bodyEnded() bool {
	if b, ok := x.r.Body.(*requestBody); ok && b.ended {
		return true
	}
	return x.r.ContentLength == 0
}

// challenge sets the header that names the credential which is needed (RFC 6750, section 3).
func (x *exchange) challenge(err error, status int) {
	value := `Bearer realm="assay"`
	switch {
	case status == http.StatusUnauthorized && identity.ReasonOf(err) != identity.NoCredential:
		value += `, error="invalid_token"`
	case status == http.StatusUnauthorized:
	case status == http.StatusForbidden && x.scope() != "" && !x.scoped:
		value += fmt.Sprintf(`, error="insufficient_scope", scope=%q`, x.scope())
	default:
		return
	}
	x.w.Header().Set("WWW-Authenticate", value)
}

// scope returns the scope that the route needs; empty: none.
func (x *exchange) scope() identity.Scope {
	for _, m := range engine.SessionMethods {
		if m.Name == x.route.Call {
			return m.Scope
		}
	}
	return ""
}

// problemRoutes explain the kinds of Problem.
func problemRoutes() []Route {
	return []Route{
		route("GET", "/problems/{kind}", "problems.show", "", "Explain a kind of error",
			func(_ context.Context, _ *engine.Session, in problemIn) (ProblemKind, error) {
				for _, k := range ProblemKinds() {
					if k.Name == in.Kind {
						return k, nil
					}
				}
				return ProblemKind{}, fmt.Errorf("no kind of error is called %q: %w", in.Kind, assay.ErrNotFound)
			}),
	}
}

type problemIn struct {
	Kind string `path:"kind"`
}
