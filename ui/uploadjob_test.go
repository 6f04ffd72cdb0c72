package ui

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/server"
)

// A stillQueue keeps uploads that no worker takes.
type stillQueue struct {
	mu   sync.Mutex
	jobs map[string]engine.UploadState
}

// Add implements engine.UploadQueue.
func (q *stillQueue) Add(_ context.Context, u engine.QueuedUpload) (string, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	job := fmt.Sprintf("job%d", len(q.jobs)+1)
	q.jobs[job] = engine.UploadState{
		Job: job, State: "queued", Collection: u.Collection, URI: u.URI, Queued: time.Now(), Identity: u.Identity, User: u.Principal.User,
	}
	return job, nil
}

// Upload implements engine.UploadQueue.
func (q *stillQueue) Upload(_ context.Context, job string) (engine.UploadState, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	state, ok := q.jobs[job]
	if !ok {
		return state, assay.ErrNotFound
	}
	return state, nil
}

// set changes the state of a job.
func (q *stillQueue) set(job string, change func(*engine.UploadState)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	state := q.jobs[job]
	change(&state)
	q.jobs[job] = state
}

// TestUploadJob checks what the page of a queued upload tells in each of its states, and who sees it.
func TestUploadJob(t *testing.T) {
	t.Parallel()
	queue := &stillQueue{jobs: map[string]engine.UploadState{}}
	x := newSite(t, func(c *engine.HostConfig, _ *server.Config) { c.Queue = queue })
	r := x.upload("ann", "/documents/upload", []file{{"plan.md", "# The plan\n\nA text."}}, "collection", "plans", "access", "everyone", "replace", "1")
	contains(t, r.body, `href="/uploads/job1"`, "waiting for a worker")
	contains(t, x.page("ann", "/uploads/job1"), "plan.md", "waiting for a worker", `href="/uploads/job1"`)

	queue.set("job1", func(s *engine.UploadState) {
		s.State, s.Attempts, s.Ended, s.Reason = "failed", 3, time.Now(), "the file <b>plan</b> is damaged"
	})
	contains(t, x.page("ann", "/uploads/job1"), "not stored", "the file &lt;b&gt;plan&lt;/b&gt; is damaged", `href="/documents/upload?collection=plans"`)
	contains(t, x.page("root", "/uploads/job1"), "not stored")
	for user, job := range map[string]string{"bob": "job1", "zed": "job1", "ann": "job2"} {
		if r := x.get(user, "/uploads/"+job); r.StatusCode != http.StatusNotFound || strings.Contains(r.body, "plan.md") {
			t.Errorf("%s sees /uploads/%s: %d", user, job, r.StatusCode)
		}
	}

	var stored assay.Document
	for d, err := range x.session("ann").Documents(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		stored = d
		break
	}
	queue.set("job1", func(s *engine.UploadState) { s.State, s.Collection, s.URI = "done", stored.Collection, stored.URI })
	contains(t, x.page("ann", "/uploads/job1"), `href="/documents/`+stored.ID+`"`)
	queue.set("job1", func(s *engine.UploadState) { s.URI = "/uploads/gone.md" })
	lacks(t, x.page("ann", "/uploads/job1"), `>The document<`)
}
