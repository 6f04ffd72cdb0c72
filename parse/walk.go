package parse

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Limits of the documents inside one source.
const (
	maxDepth      = 8         // archives in archives
	maxParts      = 10_000    // parts of one source, at all depths
	maxPartBytes  = 64 << 20  // of one part
	maxTotalBytes = 512 << 20 // of all parts of one source
)

// A Parsed is a source or a document inside it.
type Parsed struct {
	// Path is the place inside the source: the names of the parts on the way to it, joined by "!/".
	// It is empty for the source itself.
	Path     string
	Data     []byte // of the part; nil for the source itself, unless Input.Render is set
	Document Document
	Err      error // as of Parse; the others are parsed
}

// Walk parses in and all documents inside it, at all depths, and calls yield for each: the source
// first, then its parts in order. A source that only contains parts, such as an archive, is yielded
// with an empty text. A part over a limit is yielded with an ErrLimit. If the total is over a limit,
// the last value yielded is for the source itself, with an ErrLimit, and the parts after it are not
// parsed. Walk returns ctx's error or yield's.
func Walk(ctx context.Context, in Input, yield func(Parsed) error) error {
	return WalkParts(ctx, in, nil, yield)
}

// WalkParts is like Walk, but leaves out the parts, and all documents in them, for whose path enter
// returns false. enter is called before a part is read; nil means all parts.
func WalkParts(ctx context.Context, in Input, enter func(path string) bool, yield func(Parsed) error) error {
	if in.Render != nil {
		return yield(renderSafely(ctx, in))
	}
	w := walker{ctx: ctx, enter: enter, yield: yield, left: maxTotalBytes}
	err := w.walk(in, "", 0)
	var over errTotal
	if errors.As(err, &over) {
		return yield(Parsed{Err: fmt.Errorf("parse %s: %s: %w", in.Name, string(over), ErrLimit)})
	}
	return err
}

// errTotal is the reason that the rest of a source is not parsed.
type errTotal string

func (e errTotal) Error() string { return string(e) }

type walker struct {
	ctx   context.Context
	enter func(path string) bool // may be nil
	yield func(Parsed) error
	parts int
	left  int64 // bytes that parts may still have
}

func (w *walker) walk(in Input, path string, depth int) error {
	doc, err := parseSafely(w.ctx, in)
	if w.ctx.Err() != nil {
		return w.ctx.Err()
	}
	parts := doc.Parts
	doc.Parts = nil
	p := Parsed{Path: path, Document: doc, Err: err}
	if depth > 0 {
		p.Data = in.Data
	}
	if err := w.yield(p); err != nil {
		return err
	}
	for _, part := range parts {
		if err := w.part(part, in, path, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) part(part Part, in Input, path string, depth int) error {
	at := part.Name
	if path != "" {
		at = path + "!/" + part.Name
	}
	w.parts++
	switch {
	case w.parts > maxParts:
		return errTotal(fmt.Sprintf("it contains more than %d files", maxParts))
	case w.left <= 0:
		return errTotal(fmt.Sprintf("the files in it have more than %d MiB", maxTotalBytes>>20))
	case depth > maxDepth:
		return w.yield(Parsed{Path: at, Err: fmt.Errorf("parse %s: it is more than %d archives deep: %w", part.Name, maxDepth, ErrLimit)})
	}
	if w.enter != nil && !w.enter(at) {
		return nil
	}
	limit := min(maxPartBytes, w.left)
	data, err := readSafely(w.ctx, part, limit)
	switch {
	case w.ctx.Err() != nil:
		return w.ctx.Err()
	case errors.Is(err, ErrLimit) && limit < maxPartBytes:
		w.left = 0
		return errTotal(fmt.Sprintf("the files in it have more than %d MiB", maxTotalBytes>>20))
	case err != nil:
		return w.yield(Parsed{Path: at, Err: fmt.Errorf("parse %s: %w", part.Name, err)})
	}
	w.left -= int64(len(data))
	in.Name, in.Type, in.Data = part.Name, part.Type, data
	return w.walk(in, at, depth)
}

// parseSafely is Parse. A panic is an ErrCrash.
func parseSafely(ctx context.Context, in Input) (doc Document, err error) {
	defer func() {
		if v := recover(); v != nil {
			doc, err = Document{}, fmt.Errorf("parse %s: %w", in.Name, crash(v))
		}
	}()
	return Parse(ctx, in)
}

// renderSafely is render. A panic is an ErrCrash.
func renderSafely(ctx context.Context, in Input) (p Parsed) {
	defer func() {
		if v := recover(); v != nil {
			p = Parsed{Err: fmt.Errorf("draw page %d: %w", in.Render.Page, crash(v))}
		}
	}()
	data, err := render(ctx, in)
	if err != nil {
		err = fmt.Errorf("draw page %d: %w", in.Render.Page, err)
	}
	return Parsed{Data: data, Err: err}
}

// readSafely reads a part. A panic is an ErrCrash.
func readSafely(ctx context.Context, part Part, limit int64) (data []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			data, err = nil, crash(v)
		}
	}()
	return part.Read(ctx, limit)
}

// crash returns an ErrCrash with the first line of a panic's message.
func crash(v any) error {
	first, _, _ := strings.Cut(fmt.Sprint(v), "\n")
	return fmt.Errorf("%s: %w", shorten(strings.ToValidUTF8(first, "\uFFFD")), ErrCrash)
}
