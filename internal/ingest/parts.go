package ingest

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/chunk"
	"github.com/assay-rag/assay/parse"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/store"
)

// A parsing makes documents of a file and of the documents inside it. It emits them in parts of the
// size of a transaction, so that it holds few of them in memory.
type parsing struct {
	j       *job
	file    source.File
	content source.Content
	sidecar source.Sidecar
	row     store.Source // to be stored with the last part
	known   known
	same    bool // the stored documents are from the same bytes
	damaged bool // a stored text is
	emit    func(outcome) error

	describe    DescribeFunc // nil: images are not described
	fingerprint fingerprint  // of row

	started bool                      // the walk has yielded the file itself
	before  map[string]assay.Document // stored documents, by URI
	docs    map[string]bool           // URIs of the documents that there are
	next    outcome
	bytes   int   // of text in next
	broken  error // from emit
}

// errEmit ends a walk because emit failed.
var errEmit = errors.New("the outcome is not wanted")

// run parses the file and emits the outcomes. The error is ctx's or emit's.
func (p *parsing) run(ctx context.Context) error {
	for _, d := range p.known.docs {
		p.before[d.URI] = d
	}
	p.begin()
	err := p.walk(ctx)
	var crash crashError
	switch {
	case p.broken != nil:
		return p.broken
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &crash):
		p.fail(p.file.URI, skipOf(p.file.URI, p.file.Rel, err))
		if p.same {
			p.keepRest()
		}
	case err != nil:
		return fmt.Errorf("parse %s: %w", p.file.URI, err)
	}
	p.next.source, p.next.docs, p.next.bytes = &p.row, p.docs, p.row.Info.SizeBytes
	return p.emit(p.next)
}

func (p *parsing) begin() { p.next, p.bytes = outcome{file: p.file}, 0 }

// walk parses the file. A parser that panics on its input fails that file, not the run.
func (p *parsing) walk(ctx context.Context) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = crashError{v}
		}
	}()
	in := parse.Input{
		Name: path.Base(p.file.Rel), Type: p.content.Type, Data: p.content.Data, Passwords: p.j.opts.Passwords,
		OCR: p.j.opts.OCR, Images: p.describe != nil,
	}
	return p.j.opts.Walk(ctx, in, func(parsed parse.Parsed) error { return p.take(ctx, parsed) })
}

// A crashError is a panic of a parser.
type crashError struct{ value any }

func (e crashError) Error() string { return fmt.Sprintf("the parser crashed on it: %v", e.value) }

// keepRest keeps the stored documents that the walk has not reached, with the ACL that they have
// now.
func (p *parsing) keepRest() {
	for _, uri := range sortedKeys(p.before) {
		if p.docs[uri] || p.failed(uri) {
			continue
		}
		p.docs[uri] = true
		if d := p.before[uri]; !sameACL(d.ACL, p.sidecar.ACL) {
			p.next.entries = append(p.next.entries, amended(d, p.sidecar.ACL))
		}
	}
}

// take adds a document of the file.
func (p *parsing) take(ctx context.Context, parsed parse.Parsed) error {
	if parsed.Path == "" && p.started { // the rest of the file is not parsed
		p.fail(p.file.URI, skipOf(p.file.URI, p.file.Rel, parsed.Err))
		p.keepRest()
		return nil
	}
	p.started = true
	uri := p.uri(parsed.Path)
	name := parsed.Path
	if name == "" {
		name = p.file.Rel
	}
	pictures := len(parsed.Document.Images)
	if err := p.describeImages(ctx, uri, &parsed); err != nil {
		p.broken = err
		return errEmit
	}
	switch _, declares := parsed.Document.Metadata[aclKey]; {
	case parsed.Err != nil:
		p.fail(uri, skipOf(uri, name, parsed.Err))
	case strings.TrimSpace(parsed.Document.Text) == "" && pictures > 0:
		p.fail(uri, &source.Skip{URI: uri, Reason: NoText, Detail: "it has images without text, and none of them has a description"})
	case strings.TrimSpace(parsed.Document.Text) == "": // it only contains others
	case declares && !p.sidecar.ACL.Restricted:
		p.fail(uri, &source.Skip{URI: uri, Reason: ACLInText,
			Detail: "its front matter has an acl, which counts only in a sidecar; put it into " + path.Base(p.file.Rel) + ".metadata.json"})
	default:
		if p.broken = p.add(ctx, uri, parsed); p.broken != nil {
			return errEmit
		}
	}
	if len(p.next.entries) < batchDocuments && p.bytes < batchBytes {
		return nil
	}
	p.next.partial = true
	incomplete := p.row
	incomplete.Info.Hash, incomplete.Failures = "", nil
	p.next.source = &incomplete
	if p.broken = p.emit(p.next); p.broken != nil {
		return errEmit
	}
	p.begin()
	return nil
}

// uri returns the URI of the document at a path inside the file. Names in an archive may form the
// path of another document; each document has a URI of its own.
func (p *parsing) uri(inside string) string {
	if inside == "" {
		return p.file.URI
	}
	uri := p.file.URI + assay.PartSeparator + strings.ToValidUTF8(inside, string(utf8.RuneError))
	unique := uri
	for n := 2; p.docs[unique] || p.failed(unique); n++ {
		unique = fmt.Sprintf("%s (%d)", uri, n)
	}
	return unique
}

func (p *parsing) failed(uri string) bool {
	for _, f := range p.row.Failures {
		if f.URI == uri {
			return true
		}
	}
	return false
}

// describeImages adds descriptions of a document's images, if they are wanted. If images are left,
// the source is recorded as one whose images are not described, so that the next ingest that
// describes images parses it again.
func (p *parsing) describeImages(ctx context.Context, uri string, parsed *parse.Parsed) error {
	if p.describe == nil || parsed.Err != nil || len(parsed.Document.Images) == 0 {
		return nil
	}
	doc, complete, err := p.describe(ctx, uri, parsed.Document)
	if err != nil {
		return err
	}
	parsed.Document = doc
	if !complete {
		p.fingerprint.images = ""
		p.row.Info.Hash = p.fingerprint.String()
	}
	return nil
}

// add adds a document with its chunks. The error is ctx's or the encoder's of the chunker.
func (p *parsing) add(ctx context.Context, uri string, parsed parse.Parsed) error {
	doc := parsed.Document
	d := assay.Document{
		ID:         assay.DocumentID(p.j.collection, uri),
		Collection: p.j.collection,
		URI:        uri,
		Text:       doc.Text,
		Metadata:   metadata(p.file, p.content, doc, p.sidecar.Metadata, parsed.Path),
		ACL:        p.sidecar.ACL,
		Anchors:    doc.Anchors,
		Structure:  doc.Structure,
		Pages:      doc.CountPages(),
		Source:     p.row.Info,
	}
	if parsed.Path != "" {
		d.Container = p.file.URI
		d.Source.SizeBytes = int64(len(parsed.Data))
	}
	d.Title = d.Metadata[assay.MetaTitle].String
	d.Version = assay.DocumentVersion(d.Text, d.Metadata, p.j.pipeline)
	p.docs[uri] = true
	if r := pagesOf(d); r != nil {
		p.next.pages = append(p.next.pages, *r)
	}
	for _, note := range doc.Notes {
		p.next.notes = append(p.next.notes, Note{URI: uri, Text: note})
	}
	before, isKnown := p.before[uri]
	switch {
	case !isKnown:
		p.next.added++
	case before.Version == d.Version && sameACL(before.ACL, d.ACL) && !p.damaged:
		p.next.unchanged++
	default:
		p.next.updated++
	}
	if isKnown && before.Version == d.Version && !p.damaged {
		if !sameACL(before.ACL, d.ACL) || !sameInfo(before.Source, d.Source) {
			before.Source = d.Source
			p.next.entries = append(p.next.entries, amended(before, d.ACL))
		}
		return nil
	}
	chunks, err := chunk.Split(ctx, doc, d.ID, d.Version, p.j.opts.Chunk)
	if err != nil {
		return fmt.Errorf("divide %s into chunks: %w", uri, err)
	}
	if slices.ContainsFunc(doc.Provenance, func(m assay.Provenance) bool { return m.Kind == assay.ProvenanceRecognized }) {
		p.next.recognized++
		p.next.recognizedPages += d.Pages.Recognized
	}
	entry := store.Entry{Document: d, Chunks: chunks, Original: p.original(parsed)}
	p.bytes += bytesOf(entry)
	p.next.entries = append(p.next.entries, entry)
	return nil
}

// original returns the file of a document whose pages can be shown.
func (p *parsing) original(parsed parse.Parsed) assay.Original {
	data := p.content.Data
	if parsed.Path != "" {
		data = parsed.Data
	}
	media := parsed.Document.OriginalType(data)
	if media == "" || len(data) == 0 {
		return assay.Original{}
	}
	return assay.Original{Media: media, Data: data}
}

// bytesOf returns how many bytes of a transaction an entry takes.
func bytesOf(e store.Entry) int { return len(e.Document.Text) + len(e.Original.Data) }

// fail records a document that cannot be parsed. If the stored one is from the same bytes, it stays.
func (p *parsing) fail(uri string, s *source.Skip) {
	if p.failed(uri) {
		return // the rest of a file that failed before
	}
	out := skippedBy(s)
	if before, ok := p.before[uri]; ok && p.same && keepsStored(s.Reason) && !p.docs[uri] {
		p.docs[uri] = true
		out.Kept = 1
		if !sameACL(before.ACL, p.sidecar.ACL) {
			p.next.entries = append(p.next.entries, amended(before, p.sidecar.ACL))
		}
	}
	p.next.skips = append(p.next.skips, out)
	p.row.Failures = append(p.row.Failures, store.Failure{URI: uri, Reason: string(s.Reason), Detail: s.Detail, Time: p.j.began.UTC()})
}

// skipOf returns the reason for which a document cannot be parsed.
func skipOf(uri, name string, err error) *source.Skip {
	// The skip already names the document.
	detail := err.Error()
	for _, n := range []string{path.Base(name), name} {
		detail = strings.TrimPrefix(detail, "parse "+n+": ")
	}
	s := &source.Skip{URI: uri, Reason: ParserFailed, Detail: detail, Err: err}
	for _, k := range []struct {
		err    error
		reason source.Reason
	}{
		{parse.ErrBinary, Binary}, {parse.ErrEncoding, BadEncoding}, {parse.ErrMinified, Minified}, {parse.ErrEmpty, NoText},
		{parse.ErrDamaged, Damaged}, {parse.ErrPassword, NeedsPassword}, {parse.ErrLimit, OverLimit}, {parse.ErrNeedsProgram, NeedsProgram},
	} {
		if errors.Is(err, k.err) {
			s.Reason = k.reason
			break
		}
	}
	return s
}
