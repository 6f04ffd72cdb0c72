package ui

import (
	"errors"
	"net/url"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
)

// uploadJobPath is the path of the page of an upload that was queued.
func uploadJobPath(job string) string { return "/uploads/" + url.PathEscape(job) }

// An uploadJobPage is what became of an upload that was queued.
type uploadJobPage struct {
	engine.UploadState
	Name  string
	Path  string // of this page
	Mark  stateWords
	Shown bool // the document is stored, and the user may see it
}

// Waiting reports whether the upload is not decided yet.
func (p uploadJobPage) Waiting() bool { return p.State == "queued" || p.State == "running" }

// uploadStates are the states of a queued upload in words.
var uploadStates = map[string]stateWords{
	"queued":  {"wait", "clock", "waiting for a worker"},
	"running": {"wait", "clock", "being stored"},
	"done":    {"good", "check", "stored"},
	"failed":  {"bad", "cross", "not stored"},
}

// showUploadJob shows what became of an upload that was queued.
func showUploadJob(q *request) error {
	state, err := q.session.UploadState(q.ctx(), q.path("job"))
	if err != nil {
		return err
	}
	p := uploadJobPage{UploadState: state, Name: documentName(state.URI), Path: uploadJobPath(state.Job), Mark: uploadStates[state.State]}
	if p.State == "done" {
		_, err := q.session.Document(q.ctx(), state.Document)
		if err != nil && !errors.Is(err, assay.ErrNotFound) && !errors.Is(err, assay.ErrForbidden) {
			return err
		}
		p.Shown = err == nil
	}
	return q.render("uploadjob.html", q.view("Documents", p.Name, p))
}
