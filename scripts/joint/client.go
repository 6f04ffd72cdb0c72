//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"
)

// A client calls any of the servers for one tenant, and looks into every byte that comes back for the words of
// the others.
type client struct {
	w      *world
	tenant *tenant
	http   *http.Client

	mu         sync.Mutex
	responses  int
	leaks      []string
	repeated   map[string]int // why calls were repeated
	unexpected []string
}

func newClient(w *world, t *tenant) *client {
	return &client{w: w, tenant: t, http: &http.Client{Timeout: 5 * time.Minute}, repeated: map[string]int{}}
}

// A reply is a response that was read as far as it came.
type reply struct {
	status   int
	location string
	body     []byte
}

// once sends a request to a random server. The error is that of the connection; what was read before is in
// the reply.
func (c *client) once(ctx context.Context, method, path string, header map[string]string, body string) (r reply, err error) {
	address := c.w.servers[rand.IntN(len(c.w.servers))].url.Load()
	req, err := http.NewRequestWithContext(ctx, method, *address+path, strings.NewReader(body))
	if err != nil {
		return r, err
	}
	req.Header.Set("Authorization", "Bearer "+c.tenant.key)
	for name, value := range header {
		req.Header.Set(name, value)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return r, err
	}
	defer resp.Body.Close()
	r = reply{status: resp.StatusCode, location: resp.Header.Get("Location")}
	r.body, err = io.ReadAll(resp.Body)
	c.look(method+" "+path, resp.Header, r.body)
	return r, err
}

// look checks a response for the words of the other tenants.
func (c *client) look(call string, header http.Header, body []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.responses++
	head := fmt.Sprint(header)
	for _, other := range c.w.tenants {
		if other != c.tenant && (bytes.Contains(body, []byte(other.canary)) || strings.Contains(head, other.canary)) {
			c.leaks = append(c.leaks, fmt.Sprintf("%s: %s has a word of %s", c.tenant.name, call, other.name))
		}
	}
}

// passing are the statuses after which a call is worth repeating: the server, or something behind it, is not
// there now.
var passing = map[int]bool{
	http.StatusRequestTimeout: true, http.StatusConflict: true, http.StatusTooManyRequests: true,
	http.StatusBadGateway: true, http.StatusServiceUnavailable: true, http.StatusGatewayTimeout: true,
}

// call sends a request to one server after another until one answers with a status that is not passing.
func (c *client) call(ctx context.Context, method, path string, header map[string]string, body string) (reply, error) {
	for {
		r, err := c.once(ctx, method, path, header, body)
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		if err == nil && !passing[r.status] && r.status != http.StatusInternalServerError {
			return r, nil
		}
		c.repeat(method, path, r, err)
		if err := sleep(ctx, time.Duration(20+rand.IntN(200))*time.Millisecond); err != nil {
			return r, err
		}
	}
}

// repeat counts a call that is repeated. An internal error is one that the server has no name for, which
// is a failure of its own.
func (c *client) repeat(method, path string, r reply, err error) {
	why := "no connection"
	if err == nil {
		why = fmt.Sprintf("%d %s", r.status, problemType(r.body))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.repeated[why]++
	if r.status == http.StatusInternalServerError {
		c.unexpected = append(c.unexpected, fmt.Sprintf("%s %s: %d %s", method, path, r.status, r.body))
	}
}

// problemType is the last part of the type of a problem.
func problemType(body []byte) string {
	var problem struct{ Type string }
	if json.Unmarshal(body, &problem) != nil {
		return ""
	}
	return strings.TrimPrefix(problem.Type, "/problems/")
}

// get reads a JSON value. The error says which call had another status than 200.
func (c *client) get(ctx context.Context, path string, to any) error {
	r, err := c.call(ctx, http.MethodGet, path, nil, "")
	if err != nil {
		return err
	}
	if r.status != http.StatusOK {
		return fmt.Errorf("%s: GET %s: %d %s", c.tenant.name, path, r.status, r.body)
	}
	return json.Unmarshal(r.body, to)
}
