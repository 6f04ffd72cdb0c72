package awswire

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/aws/smithy-go"

	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/internal/wire"
)

// errSilent ends a call whose server has stalled.
var errSilent = errors.New("timed out without a reply")

// drain is how long to wait for the end of a stream after the end of the reply, so that its
// connection can be reused.
const drain = 50 * time.Millisecond

// An Exchange is one call on the wire. It is the HTTP client with which the SDK makes the call, and
// records the cause of a failure.
type Exchange struct {
	Name    string          // the model or service, for errors
	Errors  wire.Client     // builds errors; makes no call
	Parent  context.Context // of the caller
	Context context.Context // of the call; ends when the server stalls

	client *http.Client
	cancel context.CancelCauseFunc
	idle   time.Duration
	timer  *time.Timer

	mu      sync.Mutex
	status  int         // of the reply; 0 if there was none
	header  http.Header // of the reply
	refusal []byte      // the beginning of a reply whose status is not 2xx
	left    int64       // bytes of the reply that may still be read
	sent    error       // why there is no reply
	broken  error       // why the reply could not be read completely
}

// maxErrorBytes is the number of bytes read of an error reply.
const maxErrorBytes = 64 << 10

// Begin begins a call by name. The caller must call End. If there are no credentials, the error is an
// *llm.Error about name.
func (s *Session) Begin(ctx context.Context, name string) (*Exchange, error) {
	secrets, err := s.Secrets(ctx, name)
	if err != nil {
		return nil, err
	}
	c := s.config
	x := &Exchange{
		Name: name, client: s.HTTP, Parent: ctx, idle: cmp.Or(c.Idle, wire.DefaultIdle),
		Errors: wire.Client{Name: name, Secrets: secrets}, left: cmp.Or(c.MaxBytes, wire.DefaultMaxBytes),
	}
	x.Context, x.cancel = context.WithCancelCause(ctx)
	x.timer = time.AfterFunc(cmp.Or(c.First, wire.DefaultFirst), func() { x.cancel(errSilent) })
	return x, nil
}

// End releases the resources of the call.
func (x *Exchange) End() {
	x.timer.Stop()
	x.cancel(nil)
}

// Do implements the SDK's HTTP client.
func (x *Exchange) Do(r *http.Request) (*http.Response, error) {
	r, err := ownBody(r)
	if err != nil {
		return nil, err
	}
	res, err := x.client.Do(r)
	x.mu.Lock()
	defer x.mu.Unlock()
	if err != nil {
		x.sent = err
		return nil, err
	}
	x.timer.Reset(x.idle)
	x.status, x.header = res.StatusCode, res.Header
	if res.StatusCode/100 != 2 {
		// A truncated body is sufficient for an error message.
		x.refusal, _ = io.ReadAll(io.LimitReader(res.Body, maxErrorBytes))
		_ = res.Body.Close()
		res.Body = io.NopCloser(bytes.NewReader(x.refusal))
		return res, nil
	}
	b := &body{x: x, ReadCloser: res.Body}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "application/vnd.amazon.eventstream") {
		b.frames = new(frames)
	}
	res.Body = b
	return res, nil
}

// ownBody returns r with a body that only net/http closes. The SDK closes its own once the reply
// has begun. If net/http has not yet noticed that all of it is sent, it then breaks the connection
// in the middle of the reply (measured: one in 400 streams of a server on loopback).
func ownBody(r *http.Request) (*http.Request, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return r, nil
	}
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	own := *r
	own.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	own.Body, _ = own.GetBody()
	own.ContentLength = int64(len(data))
	// The header is not sent without a value. It allows net/http to repeat the request if a reused
	// connection turns out to be dead before the reply.
	own.Header = r.Header.Clone()
	own.Header["Idempotency-Key"] = nil
	return &own, nil
}

// Ended marks the end of the reply. Further data is awaited only briefly, and may break off.
func (x *Exchange) Ended() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.idle = drain
	x.timer.Reset(drain)
}

// A body is the body of a reply with a size limit and an idle timeout.
type body struct {
	io.ReadCloser
	x      *Exchange
	frames *frames // nil if it is no event stream
}

var errTooLarge = errors.New("the reply exceeds the size limit")

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	x := b.x
	x.mu.Lock()
	left := x.left
	x.mu.Unlock()
	if int64(len(p)) > left+1 {
		p = p[:left+1]
	}
	n, err := b.ReadCloser.Read(p)
	x.mu.Lock()
	defer x.mu.Unlock()
	if n > 0 {
		x.timer.Reset(x.idle)
	}
	if x.left -= int64(n); x.left < 0 {
		n, err = 0, errTooLarge
	}
	if b.frames != nil {
		b.frames.pass(p[:n])
		if err == io.EOF && b.frames.inside() {
			err = io.ErrUnexpectedEOF
		}
	}
	if err != nil && err != io.EOF && x.broken == nil {
		x.broken = err
	}
	return n, err
}

// frames tracks the framing of an event stream. The SDK does not detect a stream that ends within a
// frame's payload.
//
// Source: AWS, "Event stream encoding": a frame begins with its total length, four bytes in
// big-endian order.
type frames struct {
	length [4]byte
	have   int   // bytes of length read so far
	left   int64 // bytes left of the frame after its length
}

func (f *frames) pass(p []byte) {
	for len(p) > 0 {
		if f.left == 0 {
			n := copy(f.length[f.have:], p)
			f.have += n
			p = p[n:]
			if f.have < len(f.length) {
				return
			}
			f.left = max(0, int64(binary.BigEndian.Uint32(f.length[:]))-int64(len(f.length)))
			f.have = 0
			continue
		}
		n := min(f.left, int64(len(p)))
		f.left -= n
		p = p[n:]
	}
}

// inside reports whether the stream is within a frame.
func (f *frames) inside() bool { return f.left > 0 || f.have > 0 }

// Fail returns the error of a call that failed with err: the wrapped context error if the context
// has ended, else an *llm.Error. explain, which may be nil, refines an error returned by the
// service.
func (x *Exchange) Fail(err error, explain func(code, message string) (llm.ErrorKind, string)) error {
	if x.Parent.Err() != nil {
		return fmt.Errorf("ask %s: %w", x.Name, x.Parent.Err())
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	api, said := errors.AsType[smithy.APIError](err)
	switch {
	case errors.Is(context.Cause(x.Context), errSilent):
		return x.failed(llm.TimedOut, errSilent.Error())
	case x.status == 0 && x.sent != nil:
		return x.unsent(x.sent)
	case x.status == 0:
		return x.failed(llm.BadRequest, "the request could not be made: "+Innermost(err).Error())
	case x.status/100 == 3:
		return x.failed(llm.BadRequest, fmt.Sprintf("it redirects to %s, and redirects are not followed; configure the final address", x.header.Get("Location")))
	case x.status/100 != 2:
		return x.refused(ErrorCode(x.header, x.refusal), wire.Message(x.refusal), explain)
	case errors.Is(x.broken, errTooLarge):
		return x.failed(llm.TooLarge, x.broken.Error())
	case x.broken != nil:
		return x.unread(x.broken)
	case said:
		return x.refused(api.ErrorCode(), api.ErrorMessage(), explain)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return x.failed(llm.BrokeOff, "the reply is truncated")
	}
	return x.failed(llm.BadReply, Innermost(err).Error())
}

// failed returns an error about this call, with the status of the reply.
func (x *Exchange) failed(kind llm.ErrorKind, message string) *llm.Error {
	e := x.Errors.Fail(kind, "%s", message)
	if x.status/100 != 2 {
		e.Status = x.status
	}
	return e
}

// unsent returns the error of a request without a reply.
func (x *Exchange) unsent(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // without the URL
	}
	dial, _ := errors.AsType[*net.OpError](err)
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() && (dial == nil || dial.Op != "dial") {
		return x.failed(llm.TimedOut, err.Error())
	}
	return x.failed(llm.Unreachable, err.Error())
}

// unread returns the error of a reply that could not be read completely.
func (x *Exchange) unread(err error) error {
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return x.failed(llm.TimedOut, err.Error())
	}
	return x.failed(llm.BrokeOff, err.Error())
}

// refused returns the error reported by the service, either instead of a reply or within a stream.
func (x *Exchange) refused(code, message string, explain func(code, message string) (llm.ErrorKind, string)) error {
	if code != "" { // lower case in streams
		code = strings.ToUpper(code[:1]) + code[1:]
	}
	kind, known := Kinds[code]
	if !known {
		kind = llm.ServerError
		if x.status/100 != 2 {
			kind = wire.KindOf(x.status)
		}
	}
	if kind == llm.BadRequest && tooLong(message) {
		kind = llm.TooLong
	}
	if explain != nil && known {
		if k, m := explain(code, message); k != "" {
			kind, message = k, m
		}
	}
	switch {
	case message == "" || message == code:
		message = cmp.Or(code, http.StatusText(x.status))
	case known:
		message = code + ": " + message
	}
	e := x.failed(kind, message)
	e.RetryAfter = wire.RetryAfter(x.header, time.Now())
	return e
}

// Kinds maps the errors of the services and of AWS's front door.
//
// Sources: AWS, Amazon Bedrock API Reference, the errors of Converse, ConverseStream, InvokeModel,
// ApplyGuardrail, Retrieve, RetrieveAndGenerate, InvokeAgent and Rerank; "Troubleshooting Amazon
// Bedrock API Error Codes"; "Common Errors"; Amazon Kendra API Reference, Retrieve; Amazon S3 API
// Reference, QueryVectors; Neptune Analytics API Reference, ExecuteQuery.
var Kinds = map[string]llm.ErrorKind{
	"ThrottlingException":           llm.RateLimited,
	"TooManyRequestsException":      llm.RateLimited,
	"ServiceQuotaExceededException": llm.NoQuota,
	"ModelTimeoutException":         llm.TimedOut,
	"ModelNotReadyException":        llm.Overloaded,
	"ServiceUnavailableException":   llm.Overloaded,
	"ServiceUnavailable":            llm.Overloaded,
	"InternalServerException":       llm.ServerError,
	"InternalFailure":               llm.ServerError,
	"ModelErrorException":           llm.ServerError,
	"ModelStreamErrorException":     llm.ServerError,
	"BadGatewayException":           llm.ServerError,
	"DependencyFailedException":     llm.ServerError,
	"ConflictException":             llm.Overloaded,
	"ResourceNotFoundException":     llm.NoModel,
	"ValidationException":           llm.BadRequest,
	"ValidationError":               llm.BadRequest,
	"AccessDeniedException":         llm.BadKey,
	"UnrecognizedClientException":   llm.BadKey,
	"InvalidClientTokenId":          llm.BadKey,
	"InvalidSignatureException":     llm.BadKey,
	"IncompleteSignature":           llm.BadKey,
	"MissingAuthenticationToken":    llm.BadKey,
	"ExpiredTokenException":         llm.BadKey,
	"ExpiredToken":                  llm.BadKey,
	"RequestExpired":                llm.BadKey,
	"NotAuthorized":                 llm.BadKey,
	"OptInRequired":                 llm.BadKey,
	"NotFoundException":             llm.NoModel,
	"ServiceUnavailableError":       llm.Overloaded,
	"RequestTimeoutException":       llm.TimedOut,
}

// tooLong reports whether an error message is about the length of the request.
//
// Sources: the messages of Bedrock's ValidationException and of the models behind it, as reported
// by users.
func tooLong(message string) bool {
	m := strings.ToLower(message)
	for _, words := range []string{"input is too long", "prompt is too long", "too many input tokens", "too many tokens", "expected maxlength", "exceeds the maximum length", "context window", "context length", "exceed context limit", "maximum context"} {
		if strings.Contains(m, words) {
			return true
		}
	}
	return false
}

// ErrorCode returns the name of the error in a reply whose status is not 2xx.
//
// Source: Smithy, "AWS restJson1 protocol", operation error serialization.
func ErrorCode(h http.Header, body []byte) string {
	code := h.Get("X-Amzn-Errortype")
	if code == "" {
		var fields struct {
			Type any `json:"__type"`
			Code any `json:"code"`
		}
		if json.Unmarshal(body, &fields) == nil {
			code, _ = fields.Code.(string)
			if t, ok := fields.Type.(string); ok {
				code = t
			}
		}
	}
	code, _, _ = strings.Cut(code, ":")
	return code[strings.LastIndexByte(code, '#')+1:]
}

// FailedReading reports whether the reason for an incomplete reply is known.
func (x *Exchange) FailedReading() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.broken != nil || x.Context.Err() != nil
}
