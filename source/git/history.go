package git

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	gogit "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/assay-rag/assay"
)

// A history is what the commits tell about a file. The zero history is not known.
type history struct {
	commit   string
	author   string
	modified time.Time
	created  time.Time // zero: not within the commits that were searched
}

func (h history) metadata() assay.Metadata {
	m := assay.Metadata{}
	if h.commit == "" {
		return m
	}
	m["commit"] = assay.StringValue(h.commit)
	if h.author != "" {
		m[assay.MetaAuthor] = assay.StringValue(h.author)
	}
	if assay.ValidTime(h.modified) {
		m[assay.MetaModified] = assay.TimeValue(h.modified)
	}
	if !h.created.IsZero() && assay.ValidTime(h.created) {
		m[assay.MetaCreated] = assay.TimeValue(h.created)
	}
	return m
}

// dates returns the history of each file, from the newest commits that the option history allows.
// Merges are left out, because what they bring was changed by other commits.
func (r *repository) dates(ctx context.Context, head plumbing.Hash) (map[string]history, error) {
	all := map[string]history{}
	if r.history == 0 {
		return all, nil
	}
	log, err := r.repo.Log(&gogit.LogOptions{From: head, Order: gogit.LogOrderCommitterTime})
	if err != nil {
		return nil, err
	}
	defer log.Close()
	for range r.history {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		commit, err := log.Next()
		if errors.Is(err, io.EOF) || errors.Is(err, plumbing.ErrObjectNotFound) { // a shallow clone
			break
		}
		if err != nil {
			return nil, err
		}
		if commit.NumParents() > 1 {
			continue
		}
		err = addCommit(ctx, all, commit)
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// addCommit adds the files that a commit changed. Commits come from the newest to the oldest.
func addCommit(ctx context.Context, all map[string]history, commit *object.Commit) error {
	tree, err := commit.Tree()
	if err != nil {
		return err
	}
	before := &object.Tree{}
	if commit.NumParents() == 1 {
		parent, err := commit.Parent(0)
		if err == nil {
			before, err = parent.Tree()
		}
		if err != nil {
			return err
		}
	}
	diff, err := object.DiffTreeWithOptions(ctx, before, tree, &object.DiffTreeOptions{})
	if err != nil {
		return err
	}
	for _, d := range diff {
		if d.To.Name == "" {
			continue
		}
		h, ok := all[d.To.Name]
		if !ok {
			h = history{
				commit: commit.Hash.String(), author: strings.ToValidUTF8(commit.Author.Name, "\uFFFD"),
				modified: commit.Author.When.UTC(),
			}
		}
		if d.From.Name == "" {
			h.created = commit.Author.When.UTC()
		}
		all[d.To.Name] = h
	}
	return nil
}

func readAll(blob *object.Blob) ([]byte, error) {
	reader, err := blob.Reader()
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(reader)
	return data, errors.Join(err, reader.Close())
}
