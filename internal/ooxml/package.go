// Package ooxml reads Office Open XML packages (ECMA-376 part 2): the parts of a ZIP file, their
// relationships and content types, and their XML as trees. Packages are foreign bytes, so
// everything is bounded: entries, expanded sizes, compression ratio, nesting and elements.
package ooxml

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

// Errors of packages and parts. They are wrapped with the reason.
var (
	ErrDamaged = errors.New("damaged package")
	ErrLimit   = errors.New("package over a limit")

	// ErrNotPackage means that a ZIP file is intact and no package.
	ErrNotPackage = errors.New("not a package")
)

// Limits of a package.
const (
	maxEntries  = 20_000
	maxExpanded = 1 << 30  // bytes read from all parts together
	maxRatio    = 1_000    // of the bytes read from all parts to those of the package …
	freeRatio   = 64 << 20 // … beyond this many
	MaxPart     = 64 << 20 // bytes of a part that is read as a tree
)

// A Package is an open package. It is not safe for concurrent use.
type Package struct {
	ctx   context.Context
	size  int64
	files map[string]*zip.File // by lower-case name without the leading slash
	types contentTypes
	read  int64 // expanded bytes so far
}

// Is reports whether data starts like a package: a ZIP file that lists its content types.
func Is(data []byte) bool {
	return bytes.HasPrefix(data, []byte("PK\x03\x04")) && bytes.Contains(data, []byte("[Content_Types].xml"))
}

// Open opens the package in data, which it retains. Reads stop when ctx ends.
func Open(ctx context.Context, data []byte) (*Package, error) {
	zr, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrDamaged, err)
	}
	if len(zr.File) > maxEntries {
		return nil, fmt.Errorf("it has %d parts, more than %d: %w", len(zr.File), maxEntries, ErrLimit)
	}
	p := &Package{ctx: ctx, size: int64(len(data)), files: make(map[string]*zip.File, len(zr.File))}
	for _, f := range zr.File {
		name := key(f.Name)
		if _, twice := p.files[name]; twice {
			return nil, fmt.Errorf("%w: it has two parts %q", ErrDamaged, f.Name)
		}
		p.files[name] = f
	}
	if !p.Has("[Content_Types].xml") {
		return nil, ErrNotPackage
	}
	if err := p.readTypes(); err != nil {
		return nil, err
	}
	return p, nil
}

// key returns the form of a part's name under which it is found: names differ in case between
// producers, and some use backslashes.
func key(name string) string {
	return strings.ToLower(strings.TrimPrefix(strings.ReplaceAll(name, "\\", "/"), "/"))
}

// Has reports whether the package has a part.
func (p *Package) Has(name string) bool { return p.files[key(name)] != nil }

// Size returns the expanded size of a part as the package states it, which may be a lie.
func (p *Package) Size(name string) int64 {
	if f := p.files[key(name)]; f != nil {
		return int64(min(f.UncompressedSize64, 1<<62))
	}
	return 0
}

// Open returns a reader of a part, which fails with an ErrLimit after limit bytes.
func (p *Package) Open(name string, limit int64) (io.ReadCloser, error) {
	f := p.files[key(name)]
	if f == nil {
		return nil, fmt.Errorf("%w: part %q is missing", ErrDamaged, name)
	}
	r, err := f.Open()
	if err != nil {
		return nil, fmt.Errorf("%w: part %q: %v", ErrDamaged, name, err)
	}
	return &partReader{p: p, r: r, name: name, left: limit}, nil
}

// Read returns the bytes of a part, at most limit of them.
func (p *Package) Read(name string, limit int64) ([]byte, error) {
	r, err := p.Open(name, limit)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// A partReader bounds the bytes read from a part and from its package.
type partReader struct {
	p    *Package
	r    io.ReadCloser
	name string
	left int64
}

func (r *partReader) Close() error { return r.r.Close() }

func (r *partReader) Read(b []byte) (int, error) {
	if err := r.p.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := r.r.Read(b)
	r.left -= int64(n)
	r.p.read += int64(n)
	switch {
	case r.left < 0:
		return 0, fmt.Errorf("part %q is too large: %w", r.name, ErrLimit)
	case r.p.read > maxExpanded:
		return 0, fmt.Errorf("its parts have more than %d MiB: %w", maxExpanded>>20, ErrLimit)
	case r.p.read > freeRatio && r.p.read/maxRatio > r.p.size:
		return 0, fmt.Errorf("its parts expand more than %d times: %w", maxRatio, ErrLimit)
	case err != nil && err != io.EOF:
		return 0, fmt.Errorf("%w: part %q: %v", ErrDamaged, r.name, err)
	}
	return n, err
}

// contentTypes are the media types of parts, by name and by extension in lower case.
type contentTypes struct{ name, ext map[string]string }

func (p *Package) readTypes() error {
	p.types = contentTypes{map[string]string{}, map[string]string{}}
	root, err := p.Tree("[Content_Types].xml")
	if err != nil {
		return err
	}
	for _, n := range root.Children {
		switch n.Name {
		case "Override":
			p.types.name[key(n.Attr("PartName"))] = n.Attr("ContentType")
		case "Default":
			p.types.ext[strings.ToLower(n.Attr("Extension"))] = n.Attr("ContentType")
		}
	}
	return nil
}

// Type returns the media type of a part, or "".
func (p *Package) Type(name string) string {
	if t := p.types.name[key(name)]; t != "" {
		return t
	}
	return p.types.ext[strings.ToLower(strings.TrimPrefix(path.Ext(name), "."))]
}

// A Relationship is a link from one part, or from the package, to another part or outside.
type Relationship struct {
	ID       string
	Type     string // the last element of the type's URI, such as "officeDocument"
	Target   string // the name of a part without the leading slash; outside: a URI
	External bool
}

// Relationships are the relationships of one part, in the order of the source.
type Relationships []Relationship

// ID returns the relationship with an identity to a part that the package has.
func (p *Package) ID(rels Relationships, id string) (Relationship, bool) {
	for _, r := range rels {
		if r.ID == id {
			return r, !r.External && p.Has(r.Target)
		}
	}
	return Relationship{}, false
}

// First returns the first relationship of a type to a part that the package has.
func (p *Package) First(rels Relationships, kind string) (Relationship, bool) {
	for _, r := range rels {
		if r.Type == kind && !r.External && p.Has(r.Target) {
			return r, true
		}
	}
	return Relationship{}, false
}

// Relationships returns the relationships of a part, or of the package if name is empty.
func (p *Package) Relationships(name string) (Relationships, error) {
	dir, file := path.Split(strings.TrimPrefix(name, "/"))
	source := dir + "_rels/" + file + ".rels"
	if !p.Has(source) {
		return nil, nil
	}
	root, err := p.Tree(source)
	if err != nil {
		return nil, err
	}
	var rels Relationships
	for _, n := range root.Children {
		if n.Name != "Relationship" {
			continue
		}
		r := Relationship{ID: n.Attr("Id"), Type: path.Base(n.Attr("Type")), Target: n.Attr("Target"), External: n.Attr("TargetMode") == "External"}
		if !r.External {
			r.Target = resolve(dir, r.Target)
		}
		rels = append(rels, r)
	}
	return rels, nil
}

// resolve returns the name of the part that a target in a folder of the package means.
func resolve(dir, target string) string {
	target = strings.ReplaceAll(target, "\\", "/")
	if !strings.HasPrefix(target, "/") {
		target = "/" + dir + target
	}
	return strings.TrimPrefix(path.Clean(target), "/")
}
