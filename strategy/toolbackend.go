package strategy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/tool"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// toolBackend gives tools access to a run. Each of its methods is a step in the scope of the call,
// made with the caller's own access, filter and collections.
type toolBackend struct {
	env Env
	s   run.Scope
}

// newToolBackend returns the backend of a tool whose steps are in s. Its searches are recorded by
// the caller (see actorLoop.recordSearch).
func newToolBackend(e Env, s run.Scope) toolBackend {
	e.first = nil
	return toolBackend{e, s}
}

// Search implements tool.Reach. A query other than the question is searched as a rewrite of it, so
// that the relevance of a hit is its relevance to the question (see subQuestion.searchNext).
func (r toolBackend) Search(ctx context.Context, q assay.Query) (assay.Results, error) {
	if !sameWords(q.Text, r.env.Question) {
		q.Text, q.Rewrites = r.env.Question, []string{q.Text}
	}
	return r.env.search(ctx, r.s, q)
}

// Walk implements tool.Reach. As in Search, the names are searched for beside the question. Only the
// passages that the walk reaches are returned.
func (r toolBackend) Walk(ctx context.Context, q assay.Query) (assay.Results, error) {
	most := q.Limit
	q.Text, q.Rewrites, q.Limit = r.env.Question, []string{r.env.Question + " " + q.Text}, max(most, r.env.Limits.Candidates)
	found, err := r.env.search(ctx, r.s, q)
	if err != nil {
		return assay.Results{}, err
	}
	found.Hits = slices.DeleteFunc(found.Hits, func(h assay.Hit) bool { return h.Scores.Graph == nil })
	slices.SortStableFunc(found.Hits, func(a, b assay.Hit) int { return cmp.Compare(*b.Scores.Graph, *a.Scores.Graph) })
	found.Hits = found.Hits[:min(len(found.Hits), most)]
	return found, nil
}

// A Reader is a Content that also has the current versions of documents. A Content that is not a
// Reader has only documents that were found.
type Reader interface {
	// Document returns the current version, or assay.ErrNotFound.
	Document(ctx context.Context, id string) (assay.Document, error)
}

// pageInput is the recorded input of the page step.
type pageInput struct {
	Of     []tool.Reference `json:"of"` // the first that can be read is used
	Filter assay.Filter     `json:"filter"`
	Access assay.Access     `json:"access"`
	Page   int              `json:"page"`
}

// Page implements tool.Reach. A URI is looked up in the collections of the question.
func (r toolBackend) Page(ctx context.Context, ref tool.Reference, page int) (tool.Page, error) {
	in := pageInput{Filter: r.env.Filter, Access: r.env.Access, Page: page}
	if ref.Document != "" {
		in.Of = []tool.Reference{ref}
	} else {
		in.Of = r.env.candidates(ref)
	}
	step := run.Step{Name: "page", Kind: assay.StepRead}
	return run.Do(ctx, r.s, step, in, func(ctx context.Context, in pageInput) (tool.Page, assay.Usage, error) {
		for _, ref := range in.Of {
			d, err := r.env.readable(ctx, ref)
			if errors.Is(err, assay.ErrNotFound) {
				continue
			}
			if err != nil {
				return tool.Page{}, assay.Usage{}, err
			}
			return tool.PageOf(d, in.Page), assay.Usage{}, nil
		}
		return tool.Page{}, assay.Usage{}, fmt.Errorf("read a page: %w", assay.ErrNotFound)
	})
}

// candidates returns the documents that a URI may refer to, one for each collection of the question.
func (e Env) candidates(ref tool.Reference) []tool.Reference {
	of := []tool.Reference{}
	for _, c := range e.Collections {
		of = append(of, tool.Reference{Document: assay.DocumentID(c, ref.URI), URI: ref.URI, Collection: c})
	}
	return of
}

// only returns those of the named collections that the caller may search.
func (e Env) only(named []string) []string {
	if len(e.Collections) == 0 {
		return named
	}
	return slices.DeleteFunc(slices.Clone(named), func(c string) bool { return !slices.Contains(e.Collections, c) })
}

// readable returns a document if its current ACL allows access, it is in one of the caller's
// collections and their filter keeps it. Otherwise it returns assay.ErrNotFound. For a document
// that was found it returns the version that was found.
func (e Env) readable(ctx context.Context, ref tool.Reference) (assay.Document, error) {
	acl, err := e.Content.ACL(ctx, ref.Document)
	if err != nil {
		return assay.Document{}, err
	}
	d, err := e.version(ctx, ref)
	if err != nil {
		return assay.Document{}, err
	}
	if !e.Access.Allows(d.Collection, acl) {
		return assay.Document{}, assay.ErrNotFound
	}
	if len(e.Collections) > 0 && len(e.only([]string{d.Collection})) == 0 || !e.Filter.Match(d.Metadata) {
		return assay.Document{}, assay.ErrNotFound
	}
	return d, nil
}

func (e Env) version(ctx context.Context, ref tool.Reference) (assay.Document, error) {
	if ref.Version != "" {
		return e.Content.Version(ctx, ref.Document, ref.Version)
	}
	if r, ok := e.Content.(Reader); ok {
		return r.Document(ctx, ref.Document)
	}
	return assay.Document{}, assay.ErrNotFound
}

// Notes on a role's job are in the tool's output, which the journal has whether the job is run or
// replayed. See actorLoop.observe.

// about returns a reading with the question of the run if it has none of its own.
func (r toolBackend) about(in role.Reading) role.Reading {
	in.Question = cmp.Or(in.Question, r.env.Question)
	return in
}

// Summarise implements tool.Reach.
func (r toolBackend) Summarise(ctx context.Context, in role.Reading) (role.Summary, error) {
	return r.env.summarise(ctx, r.s, r.about(in), new(noteList))
}

func (e Env) summarise(ctx context.Context, s run.Scope, in role.Reading, notes *noteList) (role.Summary, error) {
	return runRole(ctx, s, e, job[role.Reading, role.Summary]{
		task: role.SummariserTask,
		do:   e.Roles.Actor.Summarise,
	}, in, notes)
}

// Compare implements tool.Reach.
func (r toolBackend) Compare(ctx context.Context, in role.Reading) (role.Contrast, error) {
	return runRole(ctx, r.s, r.env, job[role.Reading, role.Contrast]{
		task: role.ComparerTask,
		do:   r.env.Roles.Actor.Compare,
	}, r.about(in), new(noteList))
}

// Extract implements tool.Reach.
func (r toolBackend) Extract(ctx context.Context, in role.ExtractInput) (role.Extraction, error) {
	in.Reading = r.about(in.Reading)
	return runRole(ctx, r.s, r.env, job[role.ExtractInput, role.Extraction]{
		task: role.ExtractorTask,
		do:   r.env.Roles.Actor.Extract,
	}, in, new(noteList))
}
