package ingest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/source"
)

// removeDisappeared deletes the documents that the finished walk did not find below the roots it
// walked. Documents that it keeps because their folder or root could not be read are counted in the
// entry that hides them.
func (j *job) removeDisappeared(ctx context.Context) error {
	roots, err := j.walkedRoots()
	if err != nil {
		return err
	}
	hiding := make(map[string]*Skipped, len(j.kept))
	for i := range j.kept {
		hiding[j.kept[i].URI] = &j.kept[i]
	}
	var gone []assay.Document
	for uri, d := range j.known {
		by := hiddenBy(uri, hiding)
		switch {
		case j.found[uri]:
			if by != nil && by.URI == uri {
				by.Kept++
			}
		case by != nil:
			by.Kept++
		case !j.dropped[uri] && below(uri, roots) && (roots[rootOf(d)] || isGone(uri)):
			gone = append(gone, d)
		}
	}
	slices.SortFunc(gone, func(a, b assay.Document) int { return strings.Compare(a.URI, b.URI) })
	for part := range slices.Chunk(gone, batchDocuments) {
		if err := ctx.Err(); err != nil {
			return err
		}
		for _, d := range part {
			j.batch.deletes = append(j.batch.deletes, d.ID)
			j.batch.uris = append(j.batch.uris, d.URI)
		}
		if err := j.commit(ctx); err != nil {
			return err
		}
		j.report.Removed += len(part)
	}
	return nil
}

// walkedRoots returns the URIs of the roots that were walked completely.
func (j *job) walkedRoots() (map[string]bool, error) {
	roots := map[string]bool{}
	for _, r := range j.opts.Roots {
		if r == "-" || r == "" {
			continue
		}
		uri, err := source.RootURI(r)
		if err != nil {
			return nil, fmt.Errorf("root %s: %w", r, err)
		}
		roots[uri] = true
	}
	for _, err := range j.roots {
		var re *source.RootError
		if errors.As(err, &re) {
			delete(roots, re.URI)
		}
	}
	return roots, nil
}

// hiddenBy returns the entry that hides uri: its own, or that of its nearest ancestor.
func hiddenBy(uri string, hiding map[string]*Skipped) *Skipped {
	for len(hiding) > 0 {
		if s, ok := hiding[uri]; ok {
			return s
		}
		up, ok := parent(uri)
		if !ok {
			break
		}
		uri = up
	}
	return nil
}

// below reports whether uri is one of the roots or lies below one.
func below(uri string, roots map[string]bool) bool {
	for {
		if roots[uri] {
			return true
		}
		up, ok := parent(uri)
		if !ok {
			return false
		}
		uri = up
	}
}

// parent returns the folder of a URI; the parent of "/a" is "/".
func parent(uri string) (string, bool) {
	i := strings.LastIndexByte(uri, '/')
	switch {
	case i < 0 || uri == "/":
		return "", false
	case i == 0:
		return "/", true
	}
	return uri[:i], true
}

// rootOf returns the root by which a document was ingested, which is its URI without its path. For
// a document without a path (it was a root itself, or its own metadata set another value) it is the
// URI.
func rootOf(d assay.Document) string {
	p, ok := d.Metadata[assay.MetaPath]
	if !ok || p.Kind != assay.KindList {
		return d.URI
	}
	root, ok := strings.CutSuffix(d.URI, "/"+strings.Join(p.List, "/"))
	if !ok {
		return d.URI
	}
	if root == "" {
		return "/"
	}
	return root
}

// isGone reports whether the file that a URI names no longer exists. It returns false if that is
// uncertain.
func isGone(uri string) bool {
	path := source.Path(uri)
	if _, err := os.Lstat(path); err == nil {
		return false
	} else if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	// If a parent folder became a file, not every system reports "does not exist".
	info, err := os.Stat(filepath.Dir(path))
	return err == nil && !info.IsDir()
}
