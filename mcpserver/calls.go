package mcpserver

import (
	"context"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// calls are the calls of tools in progress. The zero value is ready for use.
type calls struct {
	mu  sync.Mutex
	all map[*inProgress]struct{}
}

// An inProgress is a call of a tool.
type inProgress struct {
	session *mcp.ServerSession
	cancel  context.CancelFunc
}

// begin adds a call. done must be called when it ends.
func (c *calls) begin(ctx context.Context, session *mcp.ServerSession) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancel(ctx)
	p := &inProgress{session, cancel}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[*inProgress]struct{}{}
	}
	c.all[p] = struct{}{}
	return ctx, func() {
		cancel()
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.all, p)
	}
}

// cancel cancels the calls of a session, or all if it is nil.
func (c *calls) cancel(session *mcp.ServerSession) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for p := range c.all {
		if session == nil || p.session == session {
			p.cancel()
		}
	}
}
