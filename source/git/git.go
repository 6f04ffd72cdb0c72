// Package git reads the files of a branch of a Git repository as a source, with the authors and
// dates of their commits. It needs no git program.
package git

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	gogit "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/source"
)

// Kind returns the kind of source.
func Kind() source.Kind {
	return source.Kind{
		Name: "git", Short: "the files of a branch of a Git repository", Target: "https://HOST/REPOSITORY or PATH",
		Help: `Reads the files of one branch, with the author and the date of the last commit of each, and
the date of its first. Only what changed between two commits is read again. Submodules,
symbolic links and files in Git LFS are skipped with the reason. NAME.EXT.metadata.json beside
NAME.EXT gives a document its metadata and ACL. A repository at a PATH is read in place; one
at an address is kept in the data directory.`,
		Options: []source.Option{
			{Name: "branch", Help: "branch to read; empty: the repository's default"},
			{Name: "path", Help: "read only this folder of the repository"},
			{Name: "extensions", Help: "read only files with these extensions, such as md,rst; empty: all"},
			{Name: "hidden", Default: "false", Help: "true: include names that start with a dot"},
			{Name: "history", Default: "10000", Help: "commits that are searched for authors and dates; 0: none"},
			{Name: "user", Default: "git", Help: "user name that goes with the token"},
			source.AllowPrivateOption,
		},
		Credentials:      []source.Credential{{Name: "token", Env: "GIT_TOKEN", Help: "access token or password, for repositories that are not public", Optional: true}},
		DeletesInChanges: true,
		Absolute:         absolute,
		Open:             open,
	}
}

// absolute makes a path absolute and leaves an address unchanged.
func absolute(target string) (string, error) {
	if strings.Contains(target, "://") {
		return target, nil
	}
	return filepath.Abs(target)
}

type repository struct {
	config     source.Config
	remote     *url.URL // nil: a repository on this machine
	branch     string
	folder     string // of the repository, without slashes at the ends
	extensions []string
	hidden     bool
	history    int
	token      string

	mu   sync.Mutex // go-git's storage is not safe for concurrent use
	repo *gogit.Repository
}

func open(_ context.Context, c source.Config) (source.Source, error) {
	r := &repository{
		config: c.WithDefaults(), branch: c.Options["branch"], hidden: c.Options["hidden"] == "true",
		folder: strings.Trim(path.Clean("/"+c.Options["path"]), "/"),
	}
	if c.Target == "" {
		return nil, fmt.Errorf("target is empty: %w", assay.ErrInvalid)
	}
	if strings.Contains(c.Target, "://") {
		u, err := url.Parse(c.Target)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return nil, fmt.Errorf("target %q is not the address of a repository over HTTPS: %w", c.Target, assay.ErrInvalid)
		}
		if u.RawQuery != "" {
			return nil, fmt.Errorf("the target has a query; use the credential token for a secret: %w", assay.ErrInvalid)
		}
		if u.User != nil {
			return nil, fmt.Errorf("the target has a user in it; use the option user and the credential token: %w", assay.ErrInvalid)
		}
		r.remote = u
	}
	var err error
	if r.history, err = strconv.Atoi(c.Options["history"]); err != nil || r.history < 0 {
		return nil, fmt.Errorf("option history is %q, want a number of commits: %w", c.Options["history"], assay.ErrInvalid)
	}
	for e := range strings.SplitSeq(c.Options["extensions"], ",") {
		if e = strings.Trim(strings.ToLower(e), " ."); e != "" {
			r.extensions = append(r.extensions, "."+e)
		}
	}
	r.token, err = r.config.Credential("token")
	return r, err
}

func (r *repository) Changes(ctx context.Context, cursor string) iter.Seq2[source.Change, error] {
	return func(yield func(source.Change, error) bool) {
		changes, head, err := r.changes(ctx, cursor)
		if err != nil {
			yield(source.Change{}, r.failed(ctx, err))
			return
		}
		for _, c := range changes {
			if ctx.Err() != nil {
				yield(source.Change{}, ctx.Err())
				return
			}
			if !yield(c.change, c.err()) {
				return
			}
		}
		yield(source.Change{Cursor: head}, nil)
	}
}

func (r *repository) Sweep(ctx context.Context) iter.Seq2[source.Item, error] {
	return func(yield func(source.Item, error) bool) {
		changes, _, err := r.changes(ctx, "")
		if err != nil {
			yield(source.Item{}, r.failed(ctx, err))
			return
		}
		for _, c := range changes {
			if !yield(c.change.Item, c.err()) {
				return
			}
		}
	}
}

// A fileChange is a change or a skip.
type fileChange struct {
	change source.Change
	skip   *source.Skip
}

func (c fileChange) err() error {
	if c.skip == nil {
		return nil // not a nil *source.Skip
	}
	return c.skip
}

// none is the cursor of a repository without commits.
const none = "none"

// changes returns the changes between the commit of the cursor and the branch, by path, and the
// cursor of the branch.
func (r *repository) changes(ctx context.Context, cursor string) ([]fileChange, string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	head, err := r.update(ctx)
	if err != nil {
		return nil, "", err
	}
	if head.IsZero() {
		if cursor != "" && cursor != none {
			return nil, "", fmt.Errorf("the branch has no commit any more: %w", source.ErrCursor)
		}
		return nil, none, nil
	}
	commit, err := r.repo.CommitObject(head)
	if err != nil {
		return nil, "", err
	}
	tree, err := commit.Tree()
	if err != nil {
		return nil, "", err
	}
	paths, err := r.changedPaths(ctx, cursor, tree)
	if err != nil || len(paths) == 0 {
		return nil, head.String(), err
	}
	dates, err := r.dates(ctx, head)
	if err != nil {
		return nil, "", err
	}
	var changes []fileChange
	for _, p := range paths {
		if err := ctx.Err(); err != nil {
			return nil, "", err
		}
		changes = append(changes, r.change(tree, p, dates[p]))
	}
	return changes, head.String(), nil
}

// changedPaths returns the paths of the documents that differ between the commit of the cursor and
// tree, sorted. A changed sidecar changes its document.
func (r *repository) changedPaths(ctx context.Context, cursor string, tree *object.Tree) ([]string, error) {
	from := &object.Tree{}
	if cursor != "" && cursor != none {
		commit, err := r.repo.CommitObject(plumbing.NewHash(cursor))
		if err == nil {
			from, err = commit.Tree()
		}
		if err != nil {
			return nil, fmt.Errorf("commit %s is not in the repository: %w", cursor, source.ErrCursor)
		}
	}
	diff, err := object.DiffTreeWithOptions(ctx, from, tree, &object.DiffTreeOptions{})
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, d := range diff {
		for _, p := range []string{d.From.Name, d.To.Name} {
			if p = strings.TrimSuffix(p, source.SidecarSuffix); p != "" && r.wanted(p) {
				paths = append(paths, p)
			}
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths), nil
}

// wanted reports whether the options include a path.
func (r *repository) wanted(p string) bool {
	if r.folder != "" && !strings.HasPrefix(p, r.folder+"/") {
		return false
	}
	if len(r.extensions) > 0 && !slices.Contains(r.extensions, strings.ToLower(path.Ext(p))) {
		return false
	}
	return r.hidden || !strings.HasPrefix(p, ".") && !strings.Contains(p, "/.")
}

// change describes the file at a path of tree.
func (r *repository) change(tree *object.Tree, p string, when history) fileChange {
	uri := r.uri(p)
	entry, err := tree.FindEntry(p)
	if errors.Is(err, object.ErrEntryNotFound) || errors.Is(err, object.ErrDirectoryNotFound) || err == nil && entry.Mode == filemode.Dir {
		return fileChange{change: source.Change{Item: source.Item{URI: uri}, Deleted: true}}
	}
	skip := &source.Skip{URI: uri, Reason: source.Unsupported, Err: err}
	switch {
	case err != nil:
		skip.Reason, skip.Detail = source.Unreadable, "cannot be read: "+err.Error()
		return fileChange{skip: skip}
	case entry.Mode == filemode.Submodule:
		skip.Detail = "is a submodule, which is a repository of its own"
		return fileChange{skip: skip}
	case entry.Mode == filemode.Symlink:
		skip.Detail = "is a symbolic link"
		return fileChange{skip: skip}
	}
	item := source.Item{
		URI: uri, Name: path.Base(p), Version: entry.Hash.String(), Ref: entry.Hash.String(), Metadata: when.metadata(),
	}
	item.Metadata[assay.MetaPath] = assay.ListValue(strings.Split(strings.ToValidUTF8(p, "\uFFFD"), "/")...)
	if item.Size, err = r.repo.Storer.EncodedObjectSize(entry.Hash); err != nil {
		skip.Reason, skip.Detail = source.Unreadable, "cannot be read: "+err.Error()
		return fileChange{skip: skip}
	}
	if skip := r.applySidecar(tree, p, &item); skip != nil {
		return fileChange{skip: skip}
	}
	return fileChange{change: source.Change{Item: item}}
}

// applySidecar gives an item the metadata and ACL of its sidecar, if it has one.
func (r *repository) applySidecar(tree *object.Tree, p string, item *source.Item) *source.Skip {
	entry, err := tree.FindEntry(p + source.SidecarSuffix)
	if errors.Is(err, object.ErrEntryNotFound) {
		return nil
	}
	var sidecar source.Sidecar
	if err == nil {
		var data []byte
		if data, err = r.read(item.URI, entry.Hash, source.MaxSidecarBytes); err == nil {
			sidecar, err = source.ParseSidecar(data)
		}
	}
	if err != nil {
		return &source.Skip{URI: item.URI, Reason: source.BadSidecar, Err: err,
			Detail: "its sidecar is not usable, so who may see it is not known: " + err.Error()}
	}
	item.ACL = sidecar.ACL
	for key, value := range sidecar.Metadata {
		item.Metadata[key] = value
	}
	return nil
}

// uri returns the address of a file: that of its page at the hosts whose pages are known, else the
// target and the path.
func (r *repository) uri(p string) string {
	if r.remote == nil {
		return source.URI(r.config.Target) + "#" + source.EscapeName(p)
	}
	base := strings.TrimSuffix(strings.TrimSuffix(r.remote.String(), "/"), ".git")
	branch := r.branch
	if branch == "" {
		branch = "HEAD"
	}
	escaped := strings.ReplaceAll((&url.URL{Path: branch + "/" + p}).EscapedPath(), assay.PartSeparator, "%21/")
	switch host := r.remote.Hostname(); {
	case host == "github.com":
		return base + "/blob/" + escaped
	case host == "gitlab.com", strings.HasPrefix(host, "gitlab."):
		return base + "/-/blob/" + escaped
	}
	return base + "#" + source.EscapeName(p)
}

// lfsStart is the beginning of a pointer to a file in Git LFS.
//
// Source: git-lfs, docs/spec.md.
const lfsStart = "version https://git-lfs.github.com/spec/"

func (r *repository) Fetch(ctx context.Context, item source.Item) (source.Content, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return source.Content{}, err
	}
	if err := r.openRepository(); err != nil {
		return source.Content{}, r.failed(ctx, err)
	}
	data, err := r.read(item.URI, plumbing.NewHash(item.Ref), r.config.MaxBytes)
	if err != nil {
		return source.Content{}, err
	}
	if len(data) < 1024 && strings.HasPrefix(string(data), lfsStart) {
		return source.Content{}, &source.Skip{URI: item.URI, Reason: source.Unsupported, Detail: "is stored in Git LFS, which is not read"}
	}
	return source.Content{Data: data, Read: r.config.Now(), Modified: item.Metadata[assay.MetaModified].Time}, nil
}

// failed returns the error of a listing.
func (r *repository) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("repository %s: %w", r.config.Target, err)
}

func (r *repository) Close() error { return nil }
