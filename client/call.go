package client

import (
	"bytes"
	"context"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/assay-rag/assay"
)

// A call is a request that is being built and sent. The first error in building it is kept.
type call struct {
	method, path string // the path is escaped
	query        url.Values
	header       http.Header
	body         io.Reader // nil: none
	length       int64     // of the body in bytes; -1: not known
	repeatable   bool      // a second attempt has no second effect
	err          error
}

// newCall returns a call of a path, whose parts in braces are replaced by values. A value of a part
// that ends with "..." may have slashes.
func newCall(method, pattern string, values ...string) *call {
	q := &call{
		method: method, query: url.Values{}, header: http.Header{"Accept": {"application/json"}},
		repeatable: method != http.MethodPost && method != http.MethodPatch,
	}
	parts := strings.Split(pattern, "/")
	for i, part := range parts {
		if !strings.HasPrefix(part, "{") {
			continue
		}
		value := values[0]
		values = values[1:]
		pieces := []string{value}
		if strings.HasSuffix(part, "...}") {
			pieces = strings.Split(value, "/")
		}
		for j, piece := range pieces {
			if piece == "" || piece == "." || piece == ".." {
				q.err = fmt.Errorf("client: %s %s: the value %q has no place in a path: %w", method, pattern, value, assay.ErrInvalid)
			}
			pieces[j] = url.PathEscape(piece)
		}
		parts[i] = strings.Join(pieces, "/")
	}
	q.path = strings.Join(parts, "/")
	return q
}

// param adds a parameter of the query, unless the value is zero.
func (q *call) param(name string, value any) {
	for _, text := range q.texts(value) {
		q.query.Add(name, text)
	}
}

// set sets a header, unless the value is zero.
func (q *call) set(name string, value any) {
	texts := q.texts(value)
	if len(texts) > 0 {
		q.header.Del(name)
	}
	for _, text := range texts {
		q.header.Add(name, text)
	}
}

// texts returns the forms of a parameter: none if it is zero.
func (q *call) texts(value any) []string {
	v := reflect.ValueOf(value)
	if !v.IsValid() || v.IsZero() {
		return nil
	}
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch value := v.Interface().(type) {
	case []string:
		return value
	case time.Time:
		return []string{value.Format(time.RFC3339Nano)}
	case encoding.TextMarshaler:
		text, err := value.MarshalText()
		q.err = errors.Join(q.err, err)
		return []string{string(text)}
	}
	switch v.Kind() {
	case reflect.Bool:
		return []string{strconv.FormatBool(v.Bool())}
	case reflect.Int, reflect.Int64:
		return []string{strconv.FormatInt(v.Int(), 10)}
	case reflect.String:
		return []string{v.String()}
	}
	q.err = errors.Join(q.err, fmt.Errorf("a %T is no parameter: %w", value, assay.ErrInvalid))
	return nil
}

// json sets the body to the JSON form of a value.
func (q *call) json(value any) {
	data, err := json.Marshal(value)
	if err != nil {
		q.err = errors.Join(q.err, fmt.Errorf("client: %s %s: encode the request: %w: %w", q.method, q.path, err, assay.ErrInvalid))
		return
	}
	q.send(bytes.NewReader(data), "application/json")
}

// send sets the body. "*/*" leaves its media type open.
func (q *call) send(body io.Reader, media string) {
	q.body, q.length = body, -1
	if sized, ok := body.(interface{ Len() int }); ok {
		q.length = int64(sized.Len())
	}
	if media == "*/*" {
		media = "application/octet-stream"
	}
	if q.header.Get("Content-Type") == "" {
		q.header.Set("Content-Type", media)
	}
}

// form sets the body to a form whose parts are separated by a boundary.
func (q *call) form(body io.Reader, boundary string) {
	media := mime.FormatMediaType("multipart/form-data", map[string]string{"boundary": boundary})
	if media == "" || boundary == "" {
		q.err = errors.Join(q.err, fmt.Errorf("client: %s %s: the boundary %q: %w", q.method, q.path, boundary, assay.ErrInvalid))
	}
	q.send(body, media)
}

// setKey gives a mutating call its idempotency key, the same for all attempts.
func (q *call) setKey(ctx context.Context) {
	if q.method != http.MethodGet && q.header.Get("Idempotency-Key") == "" {
		q.header.Set("Idempotency-Key", idempotencyKey(ctx))
	}
}

// canRewind reports whether the body can be sent again.
func (q *call) canRewind() bool {
	_, seeks := q.body.(io.Seeker)
	return q.body == nil || seeks
}

// rewind prepares the body to be sent again.
func (q *call) rewind() error {
	if q.body == nil {
		return nil
	}
	_, err := q.body.(io.Seeker).Seek(0, io.SeekStart)
	if err != nil {
		return q.fail(err)
	}
	return nil
}

// fail returns an error of this call.
func (q *call) fail(err error) error { return fmt.Errorf("client: %s %s: %w", q.method, q.path, err) }

// fetch sends a call and decodes the JSON of its response.
func fetch[T any](ctx context.Context, c *Client, q *call) (T, error) {
	var out T
	resp, err := c.send(ctx, q)
	if err != nil {
		return out, err
	}
	defer resp.Body.Close()
	data, err := readAll(resp.Body, maxBody)
	if err != nil {
		return out, q.broken(ctx, err)
	}
	if err := json.Unmarshal(data, &out); err != nil {
		return out, q.fail(fmt.Errorf("decode the response: %w", err))
	}
	return out, nil
}

// finish sends a call whose response has no body.
func (c *Client) finish(ctx context.Context, q *call) error {
	resp, err := c.send(ctx, q)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
