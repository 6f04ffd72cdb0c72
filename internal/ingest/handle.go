package ingest

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/store"
)

// handle determines the outcome of one file and passes it to emit, in several parts if it contains
// many documents. It reads and parses the file only if necessary. With share, a file with the
// content of another is not parsed. The error is ctx's or emit's.
func (j *job) handle(ctx context.Context, f source.File, share bool, emit func(outcome) error) error {
	k := j.known[f.URI]
	sidecar, err := f.Sidecar()
	if err != nil {
		return j.skip(f, err, emit)
	}
	if j.requireACL && !sidecar.ACL.Restricted {
		return j.skip(f, j.noACL(f), emit)
	}
	want := j.fingerprint(sidecar)
	have := parseFingerprint(k.source.Info.Hash)
	stands := j.stands(k, sidecar.ACL, share)
	stands = stands && !have.lacks(want, j.documentsOf(k))
	if stands && !j.opts.Verify && have.unread(want, k.source.Info, f) {
		return emit(j.amend(f, k, k.source.Info, sidecar.ACL))
	}
	if err := j.inFlight.Acquire(ctx, j.weight(f)); err != nil {
		return err
	}
	defer j.inFlight.Release(j.weight(f))
	content, err := f.Read(ctx)
	if err != nil {
		return j.unreadable(f, k, sidecar.ACL, err, emit)
	}
	want.content = contentHash(content.Data)
	want.racy = isRacy(content)
	info := assay.SourceInfo{SizeBytes: int64(len(content.Data)), Modified: content.Modified, Hash: want.String()}
	same := k.row && have.content == want.content
	damaged, err := j.damaged(ctx, k.docs)
	if err != nil {
		return err
	}
	sameInputs := have.pipeline == want.pipeline && have.metadata == want.metadata
	if stands && same && !damaged && sameInputs {
		want.ocr, want.images = have.ocr, have.images // the documents stay
		info.Hash = want.String()
		return emit(j.amend(f, k, info, sidecar.ACL))
	}
	describe := j.opts.Describe
	if describe == nil && have.images != "" && j.opts.Redescribe != nil {
		describe, want.images = j.opts.Redescribe(have.images), have.images
		info.Hash = want.String()
	}
	row := store.Source{Collection: j.collection, URI: f.URI, Path: pathOf(f), Info: info, ACL: sidecar.ACL}
	if key := keyOf(row); share && key != "" {
		if holder := j.claims.claim(key, f.URI); holder != f.URI {
			row.SameAs = holder
			return emit(outcome{file: f, bytes: info.SizeBytes, source: &row})
		}
	}
	p := parsing{
		j: j, file: f, content: content, sidecar: sidecar, row: row, known: k, same: same, damaged: damaged,
		describe: describe, fingerprint: want,
		emit: emit, before: map[string]assay.Document{}, docs: map[string]bool{},
	}
	return p.run(ctx)
}

// fingerprint returns the parts of a file's fingerprint that are known without reading it.
func (j *job) fingerprint(s source.Sidecar) fingerprint {
	f := fingerprint{pipeline: hash([]byte(j.pipeline)), metadata: metadataHash(s.Metadata)}
	if j.opts.OCR != nil {
		f.ocr = hash([]byte(j.opts.OCR.String()))
	}
	if j.opts.Describe != nil {
		f.images = j.opts.Describer
	}
	return f
}

// stands reports whether the stored state of a file can still be right if the file is unchanged.
func (j *job) stands(k known, acl assay.ACL, share bool) bool {
	if !k.row || k.source.Info.Hash == "" {
		return false
	}
	if k.source.SameAs != "" {
		return share && sameACL(k.source.ACL, acl) && j.claims.holds(k.source.SameAs, keyOf(k.source))
	}
	for _, failure := range k.source.Failures {
		switch reason := source.Reason(failure.Reason); {
		case j.opts.Retry, j.opts.RetryOnly:
			return false
		case reason == NeedsProgram, reason == ACLInText && !sameACL(k.source.ACL, acl):
			return false
		case reason == NeedsPassword && len(j.opts.Passwords) > 0:
			return false
		}
	}
	return true
}

// documentsOf returns the stored documents that stand for a source, without text: its own, or those
// of the source that it is the same as.
func (j *job) documentsOf(k known) []assay.Document {
	if k.source.SameAs != "" {
		return j.known[k.source.SameAs].docs
	}
	return k.docs
}

// noACL returns the reason to skip a file without an ACL in a collection that requires one.
func (j *job) noACL(f source.File) *source.Skip {
	return &source.Skip{URI: f.URI, Reason: NoACL,
		Detail: "has no ACL, and the collection " + j.collection + " requires one; put it into " + path.Base(f.Rel) + ".metadata.json"}
}

// damaged reports whether a stored text was altered on disk. It checks only in a run that verifies.
func (j *job) damaged(ctx context.Context, docs []assay.Document) (bool, error) {
	if !j.opts.Verify {
		return false, nil
	}
	for _, d := range docs {
		_, err := j.content.Document(ctx, d.ID)
		if err == nil {
			if _, err = j.content.Original(ctx, d.ID, d.Version); errors.Is(err, assay.ErrNotFound) {
				err = nil // it has none
			}
		}
		if errors.Is(err, assay.ErrDamaged) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

// skip emits an error of source as an outcome. An error that is not a *source.Skip is ctx's and is
// returned.
func (j *job) skip(f source.File, err error, emit func(outcome) error) error {
	var s *source.Skip
	if !errors.As(err, &s) {
		return err
	}
	return emit(outcome{file: f, refused: true, skips: []Skipped{skippedBy(s)}})
}

// unreadable emits the outcome of a file that cannot be read. If that says nothing about its
// content, the ACL is still applied, because the sidecar can be read.
func (j *job) unreadable(f source.File, k known, acl assay.ACL, err error, emit func(outcome) error) error {
	return j.skip(f, err, func(o outcome) error {
		if k.row && isTransient(o.skips[0].Reason) && k.source.SameAs == "" {
			a := j.amend(f, k, k.source.Info, acl)
			o.entries, o.source, o.docs = a.entries, a.source, a.docs
		}
		return emit(o)
	})
}

// amend returns an outcome that keeps the stored documents of a file, and updates their ACL and what
// is known of the file if those changed.
func (j *job) amend(f source.File, k known, info assay.SourceInfo, acl assay.ACL) outcome {
	o := outcome{file: f, bytes: info.SizeBytes, docs: map[string]bool{}}
	failed := map[string]bool{}
	o.skips = failedEarlier(k.source)
	for i := range o.skips {
		s := &o.skips[i]
		failed[s.URI] = true
		if keepsStored(s.Reason) && slices.ContainsFunc(k.docs, func(d assay.Document) bool { return d.URI == s.URI }) {
			s.Kept = 1
		}
	}
	for _, d := range k.docs {
		o.docs[d.URI] = true
		changed := !sameACL(d.ACL, acl)
		switch {
		case changed:
			o.updated++
		case !failed[d.URI]:
			o.unchanged++
		}
		touched := d.Container == "" && !sameInfo(d.Source, info)
		if touched {
			d.Source = info
		}
		if changed || touched {
			o.entries = append(o.entries, amended(d, acl))
		}
		if r := pagesOf(d); r != nil {
			o.pages = append(o.pages, *r)
		}
	}
	if row := k.source; !sameACL(row.ACL, acl) || !sameInfo(row.Info, info) {
		row.Info, row.ACL = info, acl
		o.source = &row
	}
	return o
}

func sameInfo(a, b assay.SourceInfo) bool {
	return a.Hash == b.Hash && a.SizeBytes == b.SizeBytes && a.Modified.Equal(b.Modified)
}

// amended returns an entry that changes a stored version's ACL and SourceInfo. The store needs no
// text or chunks for the current version.
func amended(d assay.Document, acl assay.ACL) store.Entry {
	d.ACL = acl
	return store.Entry{Document: d}
}

// weight returns the share of the limit of bytes in flight that a file takes.
func (j *job) weight(f source.File) int64 {
	size := f.SizeBytes
	if f.Source == source.FromStdin {
		size = j.opts.Source.MaxFileBytes
	}
	return min(size*weightOf(f.Rel), j.maxBytes)
}

// heavy are the extensions of formats whose documents take several times the memory of the file,
// because the file is compressed.
var heavy = map[string]bool{
	".7z": true, ".bz2": true, ".docm": true, ".docx": true, ".epub": true, ".gz": true, ".odp": true, ".ods": true, ".odt": true,
	".pdf": true, ".pptm": true, ".pptx": true, ".rar": true, ".tgz": true, ".xlsm": true, ".xlsx": true, ".xz": true, ".zip": true, ".zst": true,
}

// weightOf returns how many bytes of text each byte of a file counts as: 4 in a compressed format.
func weightOf(name string) int64 {
	if heavy[strings.ToLower(path.Ext(name))] {
		return 4
	}
	return 1
}

// pathOf returns the parts of a file's path below its root, or nil for a root.
func pathOf(f source.File) []string {
	if f.URI == f.Root {
		return nil
	}
	return strings.Split(f.Rel, "/")
}

// pagesOf returns the report on a document's pages, or nil if all have text.
func pagesOf(d assay.Document) *PageReport {
	if d.Pages.NoText+d.Pages.Failed == 0 {
		return nil
	}
	return &PageReport{URI: d.URI, PageCounts: d.Pages}
}

// keepsStored reports whether a document that failed with this reason stays as it was stored from the
// same bytes.
func keepsStored(r source.Reason) bool {
	switch r {
	case ParserFailed, Damaged, NeedsPassword, NeedsProgram, OverLimit:
		return true
	}
	return false
}
