package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/stepfn"
	"github.com/assay-rag/assay/strategy"
)

// agentcorePort is the port on which AgentCore calls containers.
const agentcorePort = "8080"

// agentcore serves AgentCore's HTTP protocol until ctx ends, and finishes the requests in progress.
func (p *program) agentcore(ctx context.Context) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", ":"+agentcorePort)
	if err != nil {
		return err
	}
	return p.serve(ctx, l)
}

// finishing is how long requests in progress may take after the end.
const finishing = 30 * time.Second

func (p *program) serve(ctx context.Context, l net.Listener) error {
	defer l.Close()
	a, err := p.open(ctx)
	if err != nil {
		return err
	}
	defer a.Close()
	s := &http.Server{Handler: a.routes(time.Now()), ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	parting, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishing)
	defer cancel()
	err = s.Shutdown(parting)
	<-ended
	return err
}

// maxInvocation is the maximum length of a request.
const maxInvocation = 1 << 20

// An invocation is the body of a request: a question, or a call of a function as of a state machine.
type invocation struct {
	Prompt      string          `json:"prompt"`
	Strategy    string          `json:"strategy"` // of the prompt; empty: reflect
	Collections []string        `json:"collections"`
	Filter      assay.Filter    `json:"filter"`
	Mode        strategy.Mode   `json:"mode"`
	Follows     string          `json:"follows"`
	Node        json.RawMessage `json:"node"` // of a call; the rest is stepfn.Call
}

// A reply is the answer to a question.
type reply struct {
	Response string       `json:"response"` // its text
	Status   string       `json:"status"`   // "success"
	Answer   assay.Answer `json:"answer"`
}

// routes returns AgentCore's paths. Status is that of a container that began at a time.
func (a *agent) routes(began time.Time) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ping", func(w http.ResponseWriter, _ *http.Request) {
		respond(w, http.StatusOK, map[string]any{"status": "Healthy", "time_of_last_update": began.Unix()})
	})
	mux.HandleFunc("POST /invocations", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxInvocation))
		if err != nil {
			err = fmt.Errorf("read the request: %w: %w", assay.ErrInvalid, err)
			respondError(w, err)
			return
		}
		result, err := a.invocation(r.Context(), body)
		if err != nil {
			respondError(w, err)
			return
		}
		respond(w, http.StatusOK, result)
	})
	return mux
}

// invocation answers a question or calls a function.
func (a *agent) invocation(ctx context.Context, body []byte) (any, error) {
	var in invocation
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, fmt.Errorf("the request is not an invocation: %w: %w", assay.ErrInvalid, err)
	}
	if in.Node != nil {
		return a.Handle(ctx, body)
	}
	answer, err := a.Answer(ctx, a.Principal, engine.Request{
		Question: in.Prompt, Strategy: cmp.Or(in.Strategy, "reflect"), Collections: in.Collections, Filter: in.Filter, Mode: in.Mode, Follows: in.Follows,
	})
	return reply{Response: answer.Text, Status: "success", Answer: answer}, err
}

func respond(w http.ResponseWriter, status int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		status, data = http.StatusInternalServerError, []byte(`{"error":"assay.error"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data) // the client may be gone
}

func respondError(w http.ResponseWriter, err error) {
	f := stepfn.FailureOf(err)
	status := assay.StatusCode(err)
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		status = http.StatusRequestEntityTooLarge
	}
	respond(w, status, map[string]string{"error": f.Name, "message": f.Cause, "status": "error"})
}
