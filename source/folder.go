package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A tree is the walk of one root that is a folder.
type tree struct {
	*walk
	root    *os.Root
	real    string          // real path of the root
	uri     string          // of the root, as the user named it
	entered map[string]bool // folders walked, by path below real
	links   []link          // found but not yet followed
	found   int             // files and skips
	left    int             // entries that patterns exclude
}

// A link is a symbolic link below the root.
type link struct {
	at       spot
	sidecars []string
	rules    rules
}

// A spot is an entry's path below the root in two forms: in parts, as the user sees it, and with
// links resolved, for opening it. The two differ below a followed link.
type spot struct {
	seen []string
	real string
}

func (s spot) child(name string) spot {
	return spot{append(s.seen[:len(s.seen):len(s.seen)], name), filepath.Join(s.real, name)}
}

func (t *tree) uriOf(s spot) string {
	if len(s.seen) == 0 {
		return t.uri
	}
	return strings.TrimSuffix(t.uri, "/") + "/" + relOf(s)
}

func relOf(s spot) string { return EscapeName(strings.Join(s.seen, "/")) }

func (w *walk) folderRoot(root, uri, real string) bool {
	r, err := os.OpenRoot(real)
	if err != nil {
		return w.rootFailed(root, uri, err)
	}
	defer r.Close()
	t := &tree{walk: w, root: r, real: real, uri: uri, entered: map[string]bool{}}
	entries, err := t.list(spot{real: "."})
	if err != nil && len(entries) == 0 {
		return w.rootFailed(root, uri, err)
	}
	if t.isDataFolder(".", entries) {
		return w.rootError(root, uri, "is a data directory of assay, which holds no documents", ErrEmpty)
	}
	if !t.folder(spot{real: "."}, rules{options: w.patterns, hidden: w.opts.Hidden}) || !t.follow() {
		return false
	}
	switch {
	case t.found > 0:
		return true
	case t.left > 0:
		return w.rootError(root, uri, "nothing to ingest: all that the folder holds is excluded or hidden", ErrEmpty)
	}
	return w.rootError(root, uri, "nothing to ingest: the folder holds no files", ErrEmpty)
}

func (t *tree) skip(s spot, r Reason, detail string, err error) bool {
	t.found++
	return t.walk.skip(t.uriOf(s), r, detail, err)
}

func (t *tree) skipFolder(s spot, r Reason, detail string, err error) bool {
	t.found++
	return t.yield(File{}, &Skip{URI: t.uriOf(s), Reason: r, Detail: detail, Err: err, Folder: true})
}

// list returns a folder's entries by name. On an error it also returns the entries read before it.
func (t *tree) list(s spot) ([]fs.DirEntry, error) {
	d, err := t.root.Open(s.real)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	entries, err := d.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

// folder walks a folder recursively.
func (t *tree) folder(s spot, r rules) bool {
	t.entered[s.real] = true
	entries, err := t.list(s)
	if errors.Is(err, fs.ErrNotExist) {
		return true // removed since its parent was listed
	}
	if err != nil && !t.skipFolder(s, Unreadable, fmt.Sprintf("the folder cannot be read: %v", plainCause(err)), err) {
		return false
	}
	if t.isDataFolder(s.real, entries) {
		t.left++
		return true
	}
	r, err = t.withIgnoreFiles(s, r, entries)
	if err != nil {
		return t.skipFolder(s, BadIgnoreFile, err.Error(), err)
	}
	names := map[string]bool{}
	sidecars := map[string][]string{}
	for _, e := range entries {
		names[e.Name()] = true
		if doc, ok := documentOf(e.Name()); ok {
			sidecars[doc] = append(sidecars[doc], e.Name())
		}
	}
	for _, e := range entries {
		if t.stopped() {
			return false
		}
		child := s.child(e.Name())
		if t.leavesOut(child, r, e.IsDir()) {
			t.left++
			continue
		}
		if doc, ok := documentOf(e.Name()); ok && !e.IsDir() {
			if !names[doc] && !t.skip(child, SidecarOrphan, "is a sidecar, and there is no "+EscapeName(doc)+" beside it", nil) {
				return false
			}
			continue
		}
		if !t.entry(child, e.Type(), r, sidecars[e.Name()]) {
			return false
		}
	}
	return true
}

// isDataFolder reports whether a folder is a data directory of assay, whatever its name. Package
// store/sqlite writes the marker.
func (t *tree) isDataFolder(rel string, entries []fs.DirEntry) bool {
	const marker = "assay.json"
	if !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == marker && e.Type().IsRegular() }) {
		return false
	}
	c, err := readAt(place{t.real, filepath.Join(rel, marker)}, maxIgnoreBytes)
	var m struct {
		Program string `json:"program"`
	}
	return err == nil && json.Unmarshal(c.Data, &m) == nil && m.Program == "assay"
}

func (t *tree) leavesOut(s spot, r rules, isDir bool) bool {
	return r.excludes(s.seen, isDir) || t.excluded[filepath.Join(t.real, s.real)]
}

func (t *tree) entry(s spot, typ fs.FileMode, r rules, sidecars []string) bool {
	switch {
	case typ.IsDir():
		return t.folder(s, r)
	case typ.IsRegular():
		return t.file(s, placesOf(t.real, filepath.Dir(s.real), sidecars))
	case typ&fs.ModeSymlink != 0:
		t.links = append(t.links, link{s, sidecars, r})
		return true
	}
	return t.skip(s, SpecialFile, "is "+kindOf(typ), nil)
}

func (t *tree) file(s spot, sidecars []place) bool {
	t.found++
	info, err := t.root.Lstat(s.real)
	f := File{
		URI: t.uriOf(s), Root: t.uri, Rel: relOf(s),
		at:       place{t.real, s.real},
		sidecars: sidecars,
	}
	switch {
	case err != nil:
		return t.yield(File{}, f.skip(err))
	case !info.Mode().IsRegular():
		return t.yield(File{}, f.skip(errSpecial))
	}
	return t.walk.found(filepath.Join(t.real, s.real), info, f)
}

// follow follows the links after everything with its own path has been walked. Links found
// meanwhile are appended. Each folder is entered once, so the loop terminates.
func (t *tree) follow() bool {
	for len(t.links) > 0 {
		l := t.links[0]
		t.links = t.links[1:]
		if t.stopped() || !t.followOne(l) {
			return false
		}
	}
	return true
}

func (t *tree) followOne(l link) bool {
	target, err := filepath.EvalSymlinks(filepath.Join(t.real, l.at.real))
	switch {
	case errors.Is(err, fs.ErrPermission):
		return t.skip(l.at, Unreadable, "what it links to may not be read", err)
	case err != nil:
		return t.skip(l.at, LinkBroken, "is a link that leads nowhere", err)
	}
	rel, err := filepath.Rel(t.real, target)
	if err != nil || !filepath.IsLocal(rel) {
		return t.skip(l.at, LinkOutside, "links to "+URI(target)+", outside the folder", nil)
	}
	info, err := t.root.Lstat(rel)
	if err != nil {
		return t.skip(l.at, LinkBroken, "is a link that leads nowhere", err)
	}
	to := spot{l.at.seen, rel}
	if info.IsDir() && t.leavesOut(to, l.rules, true) {
		t.left++
		return true
	}
	out, err := t.targetLeftOut(rel, info.IsDir())
	switch {
	case err != nil:
		return t.skip(l.at, BadIgnoreFile, err.Error(), err)
	case out:
		return t.skip(l.at, LinkExcluded, "links to "+EscapeName(filepath.ToSlash(rel))+", which is excluded", nil)
	}
	switch {
	case info.IsDir() && t.entered[rel]:
		return t.skip(l.at, SameFile, "links to "+EscapeName(filepath.ToSlash(rel))+", which is read there", nil)
	case info.IsDir():
		return t.folder(to, l.rules)
	case info.Mode().IsRegular():
		return t.file(to, t.linkSidecars(l, rel))
	}
	return t.skip(l.at, SpecialFile, "links to "+kindOf(info.Mode()), nil)
}

// linkSidecars returns the sidecars beside a link to a file, or those beside its target if there
// are none, so that a link does not remove an ACL.
func (t *tree) linkSidecars(l link, target string) []place {
	if len(l.sidecars) > 0 {
		return placesOf(t.real, filepath.Dir(l.at.real), l.sidecars)
	}
	return t.siblings.sidecars(filepath.Join(t.real, target))
}

// targetLeftOut reports whether patterns exclude the target of a link or one of its folders. Hidden
// folders are allowed, because mounted configuration links every file into a hidden folder.
func (t *tree) targetLeftOut(rel string, isDir bool) (bool, error) {
	r := rules{options: t.patterns, hidden: true}
	s := spot{real: "."}
	parts := strings.Split(filepath.ToSlash(rel), "/")
	for i, name := range parts {
		entries, err := t.list(s)
		if err != nil {
			return false, fmt.Errorf("the ignore files on the way to what it links to cannot be read: %w", plainCause(err))
		}
		if r, err = t.withIgnoreFiles(s, r, entries); err != nil {
			return false, err
		}
		s = s.child(name)
		if t.leavesOut(s, r, isDir || i < len(parts)-1) {
			return true, nil
		}
	}
	return false, nil
}

// ignoreFiles are read in this order; later patterns take precedence.
var ignoreFiles = []string{".gitignore", ".assayignore"}

// maxIgnoreBytes is the largest size of an ignore file that is used.
const maxIgnoreBytes = 1 << 20

// withIgnoreFiles adds the patterns of a folder's ignore files to r. An ignore file that cannot be
// read is an error, because its exclusions are unknown.
func (t *tree) withIgnoreFiles(s spot, r rules, entries []fs.DirEntry) (rules, error) {
	var ps []pattern
	for _, name := range ignoreFiles {
		if !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == name && !e.IsDir() }) {
			continue
		}
		c, err := readAt(place{t.real, filepath.Join(s.real, name)}, maxIgnoreBytes)
		if err != nil {
			return r, fmt.Errorf("%s cannot be read, so what it excludes is not known: %w", name, plainCause(err))
		}
		ps = append(ps, parsePatterns(string(c.Data), name == ".gitignore")...)
	}
	if len(ps) > 0 {
		r = r.with(level{len(s.seen), ps})
	}
	return r, nil
}
