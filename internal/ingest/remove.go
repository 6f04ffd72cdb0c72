package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/store"
)

// removeDisappeared deletes the sources that the finished walk did not find below the roots it
// walked, with their documents.
func (j *job) removeDisappeared(ctx context.Context) error {
	gone, err := j.disappeared()
	if err != nil {
		return err
	}
	slices.SortFunc(gone, func(a, b string) int {
		// Those that share another's documents first, so that these are not copied for them.
		return cmp.Or(cmp.Compare(j.stored[b].source.SameAs, j.stored[a].source.SameAs), cmp.Compare(a, b))
	})
	for _, uri := range gone {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := j.forget(ctx, uri)
		if err != nil {
			return err
		}
		j.batch.removed += n
		if j.batch.full() {
			if err := j.commit(ctx); err != nil {
				return err
			}
		}
	}
	return j.commit(ctx)
}

// disappeared returns the URIs of the stored sources that no longer exist. Documents that stay
// because their folder or root could not be read are counted in the entry that hides them.
func (j *job) disappeared() (gone []string, err error) {
	if j.opts.RetryOnly {
		return nil, nil
	}
	roots, err := j.walkedRoots()
	if err != nil {
		return nil, err
	}
	hiding := make(map[string]*Skipped, len(j.kept))
	for i := range j.kept {
		hiding[j.kept[i].URI] = &j.kept[i]
	}
	for uri, s := range j.stored {
		by := hiddenBy(uri, hiding)
		_, found := j.found[uri]
		switch {
		case found && (by == nil || by.URI != uri), !s.row:
		case by != nil:
			by.Kept += s.shown()
		case below(uri, roots) && (roots[rootOf(s.source)] || isGone(uri)):
			gone = append(gone, uri)
		}
	}
	return gone, nil
}

// shown returns the number of documents that a source stands for.
func (s *stored) shown() int {
	if s.source.SameAs != "" {
		return 1
	}
	return len(s.docs)
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

// rootOf returns the root by which a source was ingested, which is its URI without its path.
func rootOf(s store.Source) string {
	root, ok := strings.CutSuffix(s.URI, "/"+strings.Join(s.Path, "/"))
	if len(s.Path) == 0 || !ok {
		return s.URI
	}
	return cmp.Or(root, "/")
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

// FailedRoots returns the roots by which the files that failed were ingested, sorted, by collection.
// What is no file cannot be read again and is left out.
func FailedRoots(ctx context.Context, content store.Content) (map[string][]string, error) {
	roots := map[string][]string{}
	for s, err := range content.Sources(ctx) {
		if err != nil {
			return nil, fmt.Errorf("list sources: %w", err)
		}
		if len(s.Failures) == 0 || !isFile(s.URI) {
			continue
		}
		if root := source.Path(rootOf(s)); !slices.Contains(roots[s.Collection], root) {
			roots[s.Collection] = append(roots[s.Collection], root)
		}
	}
	for _, all := range roots {
		slices.Sort(all)
	}
	return roots, nil
}
