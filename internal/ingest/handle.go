package ingest

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/chunk"
	"github.com/assay-rag/assay/parse"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/store"
)

// handle determines the outcome for one file. It reads and parses the file only if necessary. The
// only error it returns is ctx's.
func (j *job) handle(ctx context.Context, f source.File) (outcome, error) {
	known, isKnown := j.known[f.URI]
	sidecar, err := f.Sidecar()
	if err != nil {
		return skip(f, err)
	}
	if j.requireACL && !sidecar.ACL.Restricted {
		return skip(f, &source.Skip{URI: f.URI, Reason: NoACL,
			Detail: "has no ACL, and the collection " + j.collection + " requires one; put it into " + path.Base(f.Rel) + ".metadata.json"})
	}
	want := fingerprint{pipeline: hash([]byte(j.pipeline)), metadata: metadataHash(sidecar.Metadata)}
	have := parseFingerprint(known.Source.Hash)
	if isKnown && !j.opts.Verify && have.unread(want, known.Source, f) {
		return j.amend(f, known, known.Source, sidecar.ACL), nil
	}
	if err := j.reserve(ctx, f); err != nil {
		return outcome{}, err
	}
	defer j.release(f)
	content, err := f.Read(ctx)
	if err != nil {
		o, err := skip(f, err)
		if isKnown && o.skip != nil && isTransient(o.skip.Reason) && !sameACL(known.ACL, sidecar.ACL) {
			// The text cannot be read now, but the ACL is known.
			o.entry = amended(known, known.Source, sidecar.ACL)
		}
		return o, err
	}
	want.content = contentHash(content.Data)
	want.racy = isRacy(content)
	info := assay.SourceInfo{SizeBytes: int64(len(content.Data)), Modified: content.Modified, Hash: want.String()}
	same := isKnown && have.content == want.content
	damaged, err := j.damaged(ctx, known)
	if err != nil {
		return outcome{}, err
	}
	if same && !damaged && have.pipeline == want.pipeline && have.metadata == want.metadata {
		return j.amend(f, known, info, sidecar.ACL), nil
	}
	entry, err := j.build(ctx, f, content, sidecar)
	if err != nil {
		if ctx.Err() != nil {
			return outcome{}, ctx.Err()
		}
		o, err := skip(f, err)
		if o.skip != nil && same && o.skip.Reason == ParserFailed {
			// The parser failed, but the stored text still matches the source.
			o.skip.Kept = 1
			o.entry = amended(known, known.Source, sidecar.ACL)
		}
		return o, err
	}
	entry.Document.Source = info
	switch {
	case !isKnown:
		return outcome{file: f, entry: entry, what: added}, nil
	case known.Version == entry.Document.Version && !damaged:
		return j.amend(f, known, info, sidecar.ACL), nil
	}
	return outcome{file: f, entry: entry, what: updated}, nil
}

// damaged reports whether the stored text of a document was altered on disk. It checks only in a
// run that verifies.
func (j *job) damaged(ctx context.Context, known assay.Document) (bool, error) {
	if known.ID == "" || !j.opts.Verify {
		return false, nil
	}
	_, err := j.w.Document(ctx, known.ID)
	if errors.Is(err, assay.ErrDamaged) {
		return true, nil
	}
	return false, err
}

// skip turns an error of source or build into an outcome. An error that is not a *source.Skip is
// ctx's and is returned.
func skip(f source.File, err error) (outcome, error) {
	var s *source.Skip
	if !errors.As(err, &s) {
		return outcome{}, err
	}
	return outcome{file: f, what: skipped, skip: skippedBy(s)}, nil
}

// amend returns an outcome that keeps the stored version and updates its ACL and SourceInfo if they
// changed.
func (j *job) amend(f source.File, known assay.Document, info assay.SourceInfo, acl assay.ACL) outcome {
	o := outcome{file: f, what: unchanged}
	if !sameACL(known.ACL, acl) {
		o.what = updated
	}
	same := info.Hash == known.Source.Hash && info.SizeBytes == known.Source.SizeBytes && info.Modified.Equal(known.Source.Modified)
	if o.what == updated || !same {
		o.entry = amended(known, info, acl)
	}
	return o
}

// amended returns an entry that changes a stored version's ACL and SourceInfo. The store needs no
// text or chunks for the current version.
func amended(known assay.Document, info assay.SourceInfo, acl assay.ACL) *store.Entry {
	known.Source = info
	known.ACL = acl
	return &store.Entry{Document: known}
}

// reserve waits until f's bytes fit into the limit of bytes in flight.
func (j *job) reserve(ctx context.Context, f source.File) error {
	return j.inFlight.Acquire(ctx, j.weight(f))
}

func (j *job) release(f source.File) { j.inFlight.Release(j.weight(f)) }

func (j *job) weight(f source.File) int64 {
	size := f.SizeBytes
	if f.Source == source.FromStdin {
		size = j.opts.Source.MaxFileBytes
	}
	return min(size, j.maxBytes)
}

// build parses and chunks. The error is a *source.Skip, or any error if ctx has ended. A parser
// that panics on its input fails that document, not the run.
func (j *job) build(ctx context.Context, f source.File, c source.Content, s source.Sidecar) (e *store.Entry, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &source.Skip{URI: f.URI, Reason: ParserFailed, Detail: fmt.Sprintf("the parser crashed on it: %v", v)}
		}
	}()
	parsed, err := j.opts.Parse(ctx, parse.Input{Name: path.Base(f.Rel), Data: c.Data})
	if err != nil {
		return nil, parseSkip(f, err)
	}
	if _, ok := parsed.Metadata[aclKey]; ok && !s.ACL.Restricted {
		return nil, &source.Skip{URI: f.URI, Reason: ACLInText,
			Detail: "its front matter has an acl, which counts only in a sidecar; put it into " + path.Base(f.Rel) + ".metadata.json"}
	}
	d := assay.Document{
		ID:         assay.DocumentID(j.collection, f.URI),
		Collection: j.collection,
		URI:        f.URI,
		Text:       parsed.Text,
		Metadata:   metadata(f, c, parsed, s.Metadata),
		ACL:        s.ACL,
		Anchors:    parsed.Anchors,
	}
	d.Title = d.Metadata[assay.MetaTitle].String
	d.Version = assay.DocumentVersion(d.Text, d.Metadata, j.pipeline)
	return &store.Entry{Document: d, Chunks: chunk.Split(parsed, d.ID, d.Version, j.opts.Chunk)}, nil
}

func parseSkip(f source.File, err error) *source.Skip {
	// The skip already names the file.
	detail := strings.TrimPrefix(err.Error(), "parse "+path.Base(f.Rel)+": ")
	s := &source.Skip{URI: f.URI, Reason: ParserFailed, Detail: detail, Err: err}
	switch {
	case errors.Is(err, parse.ErrBinary):
		s.Reason = Binary
	case errors.Is(err, parse.ErrEncoding):
		s.Reason = BadEncoding
	case errors.Is(err, parse.ErrMinified):
		s.Reason = Minified
	case errors.Is(err, parse.ErrEmpty):
		s.Reason = NoText
	}
	return s
}
