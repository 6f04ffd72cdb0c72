package awssign

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
)

// A Client is an HTTP client for a client of the AWS SDK. It limits the size of replies.
type Client struct {
	HTTP     *http.Client
	MaxBytes int64 // of a reply
}

// A TooLargeError is the error of reading a reply of over MaxBytes.
type TooLargeError struct{ MaxBytes int64 }

func (e *TooLargeError) Error() string { return fmt.Sprintf("the reply exceeds %d bytes", e.MaxBytes) }

// Do implements the SDK's HTTP client. It sends a copy of the body, which only net/http closes: the SDK
// closes its own once the reply has begun. If net/http has not yet noticed that all of it is sent, it
// then breaks the connection in the middle of the reply.
func (c Client) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		data, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		own := *r
		own.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
		own.Body, _ = own.GetBody()
		own.ContentLength = int64(len(data))
		r = &own
	}
	res, err := c.HTTP.Do(r)
	if err == nil {
		res.Body = &body{ReadCloser: res.Body, limit: c.MaxBytes, left: c.MaxBytes}
	}
	return res, err
}

// A body is the body of a reply with a limit.
type body struct {
	io.ReadCloser
	limit, left int64
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, &TooLargeError{b.limit}
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, &TooLargeError{b.limit}
	}
	return n, err
}
