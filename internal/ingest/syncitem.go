package ingest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/store"
)

// Taken is the reason to skip an item whose document is in the collection from elsewhere.
const Taken source.Reason = "taken"

// unknownBytes is the assumed size of an item whose source does not state it.
const unknownBytes = 8 << 20

// handle determines the outcome for one item. It fetches and parses the item only if necessary.
func (s *syncJob) handle(ctx context.Context, t syncTask) syncOutcome {
	uri := t.uri()
	var o syncOutcome
	switch {
	case uri == "":
		o = syncOutcome{nothing: true}
	case t.skip != nil:
		o = s.skip(t, t.skip, nil)
	case t.deleted:
		o = s.removed(uri)
	default:
		o = s.update(ctx, t)
	}
	o.uri, o.cursor = uri, t.cursor
	return o
}

// removed returns the outcome for an item that is gone.
func (s *syncJob) removed(uri string) syncOutcome {
	_, isKnown, documents := s.known(uri)
	return syncOutcome{uri: uri, remove: documents, gone: true, nothing: !isKnown && len(documents) == 0}
}

// update brings the documents of an item up to date.
func (s *syncJob) update(ctx context.Context, t syncTask) syncOutcome {
	item := t.item
	record, isKnown, documents := s.known(item.URI)
	if reason := s.refuse(&item, documents); reason != nil {
		return s.skip(t, reason, nil)
	}
	if t.again && record.Retry != nil {
		return syncOutcome{nothing: true} // it failed a moment ago
	}
	want := s.fingerprint(item)
	fetchAll := s.opts.Full && !t.again
	if isKnown && !fetchAll && s.isCurrent(t, record, want, documents) {
		return s.keep(item, record, documents)
	}
	if s.opts.DryRun {
		return syncOutcome{what: changeOf(documents)}
	}
	content, err := s.fetch(ctx, item)
	if err != nil {
		return s.failed(ctx, t, err)
	}
	want.content = hash(slices.Concat(content.Data, []byte("\x00"+content.Type+"\x00"+metadataHash(content.Metadata))))
	fresh := store.SyncItem{URI: item.URI, Version: item.Version, Hash: want.String()}
	isStored := record.Hash == fresh.Hash && record.Reason == "" && len(documents) > 0
	if isStored && !fetchAll && s.readFailures(record, item.ACL) {
		fresh.Failures, fresh.ACL = record.Failures, record.ACL
		return s.keep(item, fresh, documents)
	}
	same := isKnown && parseFingerprint(record.Hash).content == want.content
	built, err := s.build(ctx, item, content, fresh.Hash, documents, same)
	if built.source != nil && len(built.source.Failures) > 0 {
		fresh.Failures, fresh.ACL = built.source.Failures, item.ACL
	}
	if err != nil {
		return s.failedParse(ctx, t, err, fresh, record)
	}
	o := syncOutcome{put: built.entries, record: &fresh, what: changeOf(documents), bytes: int64(len(content.Data)), parsed: built}
	for _, d := range documents {
		if !built.docs[d.URI] {
			o.remove = append(o.remove, d)
		}
	}
	if len(o.remove) == 0 && sameDocuments(built.entries, documents) {
		o.what = syncUnchanged
	}
	return o
}

// changeOf returns what storing an item is, given its documents before.
func changeOf(documents []assay.Document) syncKind {
	if len(documents) == 0 {
		return syncAdded
	}
	return syncUpdated
}

// sameDocuments reports whether all entries are stored with the same versions and ACLs.
func sameDocuments(entries []store.Entry, documents []assay.Document) bool {
	for _, e := range entries {
		i := slices.IndexFunc(documents, func(d assay.Document) bool { return d.ID == e.Document.ID })
		if i < 0 || documents[i].Version != e.Document.Version || !sameACL(documents[i].ACL, e.Document.ACL) {
			return false
		}
	}
	return true
}

// refuse returns the reason why an item may not be stored whatever its content, or nil. It puts the
// item's ACL into its normal form.
func (s *syncJob) refuse(item *source.Item, documents []assay.Document) *source.Skip {
	if !utf8.ValidString(item.URI) {
		return &source.Skip{URI: item.URI, Reason: source.Unsupported, Detail: "its address is not UTF-8"}
	}
	acl, err := assay.RestrictTo(item.ACL.Allow...)
	if err != nil || !item.ACL.Restricted && len(item.ACL.Allow) > 0 {
		return &source.Skip{URI: item.URI, Reason: source.UnknownACL, Err: err,
			Detail: "its permissions cannot be used, so who may see it is not known"}
	}
	if item.ACL.Restricted {
		item.ACL = acl
	} else if s.builder.requireACL {
		return &source.Skip{URI: item.URI, Reason: NoACL,
			Detail: "has no ACL, and the collection " + s.state.Collection + " requires one"}
	}
	if item.Size > s.opts.MaxBytes {
		return source.Config{MaxBytes: s.opts.MaxBytes}.TooLarge(item.URI, item.Size)
	}
	if len(documents) == 0 && s.foreign[item.URI] {
		return &source.Skip{URI: item.URI, Reason: Taken,
			Detail: "the collection " + s.state.Collection + " has a document of this address from elsewhere; use another collection"}
	}
	return nil
}

// fingerprint returns the parts of an item's fingerprint that are known without fetching it.
func (s *syncJob) fingerprint(item source.Item) fingerprint {
	f := s.builder.fingerprint(source.Sidecar{})
	f.metadata = itemHash(item)
	return f
}

// itemHash hashes all of an item that its documents depend on, except its content.
func itemHash(item source.Item) string {
	return hash([]byte(metadataHash(item.Metadata) + "\x00" + item.Name + "\x00" + item.Type))
}

// isCurrent reports whether the stored documents of an item are up to date, or whether its content
// was skipped for a reason that still applies.
func (s *syncJob) isCurrent(t syncTask, record store.SyncItem, want fingerprint, documents []assay.Document) bool {
	have := parseFingerprint(record.Hash)
	changed := have.pipeline != want.pipeline || have.metadata != want.metadata || have.lacks(want, documents)
	if changed || record.Retry != nil {
		return false
	}
	if !s.readFailures(record, t.item.ACL) {
		return false
	}
	switch source.Reason(record.Reason) {
	case "":
		if len(documents) == 0 {
			return false // they were removed by other means
		}
	case NeedsProgram:
		if have.ocr != want.ocr {
			return false
		}
	case NoACL, source.UnknownACL, source.BadSidecar, Taken, source.TooLarge:
		return false // they are not about the content, and would have been found again
	}
	if t.item.Version == "" {
		return t.swept && !s.opts.Kind.SweepOnly // changes of content are in the feed
	}
	return record.Version == t.item.Version
}

// readFailures reports whether the documents that could not be parsed would fail again.
func (s *syncJob) readFailures(record store.SyncItem, acl assay.ACL) bool {
	for _, f := range record.Failures {
		switch source.Reason(f.Reason) {
		case NeedsPassword:
			if len(s.opts.Parsing.Passwords) > 0 {
				return false
			}
		case ACLInText:
			if !sameACL(record.ACL, acl) {
				return false
			}
		}
	}
	return true
}

// keep returns the outcome for an item whose stored documents are current, except for their ACLs.
func (s *syncJob) keep(item source.Item, record store.SyncItem, documents []assay.Document) syncOutcome {
	o := syncOutcome{what: syncUnchanged, record: &record}
	if len(record.Failures) > 0 {
		record.ACL = item.ACL
	}
	for _, f := range record.Failures {
		o.parsed.skips = append(o.parsed.skips, Skipped{URI: f.URI, Reason: source.Reason(f.Reason), Detail: f.Detail})
	}
	for _, d := range documents {
		if !sameACL(d.ACL, item.ACL) {
			o.put = append(o.put, withACL(d, item.ACL))
			o.what = syncUpdated
		}
	}
	if record.Reason != "" {
		o.what, o.skip = syncSkipped, &Skipped{URI: item.URI, Reason: source.Reason(record.Reason), Detail: record.Detail}
	}
	if known, ok, _ := s.known(item.URI); ok && sameRecord(known, record) {
		o.record = nil
	}
	return o
}

func sameRecord(a, b store.SyncItem) bool {
	sameContent := a.Version == b.Version && a.Hash == b.Hash
	sameSkip := a.Reason == b.Reason && a.Detail == b.Detail
	sameFailures := slices.Equal(a.Failures, b.Failures) && sameACL(a.ACL, b.ACL)
	return sameContent && sameSkip && sameFailures && bytes.Equal(a.Retry, b.Retry)
}

// fetch fetches the content of an item.
func (s *syncJob) fetch(ctx context.Context, item source.Item) (source.Content, error) {
	weight := min(cmp.Or(item.Size, unknownBytes), DefaultMaxBytesInFlight)
	if err := s.inFlight.Acquire(ctx, weight); err != nil {
		return source.Content{}, err
	}
	defer s.inFlight.Release(weight)
	content, err := s.opts.Source.Fetch(ctx, item)
	if err == nil && int64(len(content.Data)) > s.opts.MaxBytes {
		err = source.Config{MaxBytes: s.opts.MaxBytes}.TooLarge(item.URI, int64(len(content.Data)))
	}
	return content, err
}

// failed returns the outcome for an item that could not be fetched.
func (s *syncJob) failed(ctx context.Context, t syncTask, err error) syncOutcome {
	skip, ok := source.AsSkip(err)
	switch {
	case ctx.Err() != nil:
		return syncOutcome{err: ctx.Err()}
	case ok && skip.Reason == source.Vanished && t.retried:
		return s.removed(t.item.URI)
	case ok:
		return s.skip(t, &source.Skip{URI: t.item.URI, Reason: skip.Reason, Detail: skip.Detail, Err: skip.Err}, nil)
	case errors.Is(err, source.ErrCredentials), errors.Is(err, source.ErrCursor):
		return syncOutcome{err: err}
	}
	o := s.skip(t, &source.Skip{URI: t.item.URI, Reason: source.Unreadable, Detail: "cannot be fetched: " + err.Error(), Err: err}, nil)
	o.failed = err
	return o
}

// failedParse returns the outcome for an item that could not be parsed. Its documents stay if the
// parser failed on the content that they were made from.
func (s *syncJob) failedParse(ctx context.Context, t syncTask, err error, fresh, record store.SyncItem) syncOutcome {
	skip, ok := source.AsSkip(err)
	switch {
	case ctx.Err() != nil:
		return syncOutcome{err: ctx.Err()}
	case !ok:
		return syncOutcome{err: err}
	}
	same := parseFingerprint(record.Hash).content == parseFingerprint(fresh.Hash).content && record.Reason == ""
	if same && keepsStored(skip.Reason) {
		return s.keepSkipped(t, skip)
	}
	return s.skip(t, skip, &fresh)
}

// skip returns the outcome for an item that cannot be stored. If the reason means that it cannot be
// read now, its documents stay and it is to be retried. Otherwise its documents are removed. fresh
// is the record of the content that was read; nil: none was.
func (s *syncJob) skip(t syncTask, skip *source.Skip, fresh *store.SyncItem) syncOutcome {
	if isTransient(skip.Reason) {
		return s.keepSkipped(t, skip)
	}
	_, _, documents := s.known(skip.URI)
	record := store.SyncItem{URI: skip.URI}
	if fresh != nil {
		record = *fresh
	} else if t.skip == nil {
		record.Version = t.item.Version
		record.Hash = s.fingerprint(t.item).String()
	}
	record.Reason, record.Detail = string(skip.Reason), s.scrub(skip.Detail)
	reported := skippedItem(skip)
	reported.Removed = len(documents) > 0
	return syncOutcome{what: syncSkipped, skip: reported, record: &record, remove: documents}
}

// keepSkipped returns the outcome for an item that cannot be read now. Its documents stay, with
// their ACL brought up to date if it is known.
func (s *syncJob) keepSkipped(t syncTask, skip *source.Skip) syncOutcome {
	record, _, documents := s.known(skip.URI)
	record.URI, record.Reason, record.Detail = skip.URI, string(skip.Reason), s.scrub(skip.Detail)
	reported := skippedItem(skip)
	reported.Kept = len(documents)
	o := syncOutcome{what: syncSkipped, skip: reported, record: &record}
	if t.skip != nil {
		o.sweepDue = true // there is nothing to retry
		return o
	}
	retry, err := json.Marshal(t.item)
	if err != nil {
		return syncOutcome{err: fmt.Errorf("the record of %s: %w", skip.URI, err)}
	}
	record.Retry = retry
	for _, d := range documents {
		if !sameACL(d.ACL, t.item.ACL) {
			o.put = append(o.put, withACL(d, t.item.ACL))
		}
	}
	return o
}

// build parses and chunks an item and the documents inside it. The error is a *source.Skip if the
// item has no document, ctx's, or another that ends the sync.
//
// documents are those that are stored for the item, and same reports that they are from the same
// content. Of these, one that cannot be parsed now stays.
func (s *syncJob) build(ctx context.Context, item source.Item, content source.Content, hash string, documents []assay.Document, same bool) (outcome, error) {
	meta := assay.Metadata{}
	for _, from := range []assay.Metadata{content.Metadata, item.Metadata} {
		for key, v := range from {
			if v, ok := convertKind(key, v); ok {
				meta[key] = v
			}
		}
	}
	meta[assay.MetaSource] = assay.StringValue(s.opts.Name)
	content.Type = cmp.Or(content.Type, item.Type)
	name := path.Base(cmp.Or(item.Name, item.URI))
	file := source.File{URI: item.URI, Root: item.URI, Rel: name, Source: s.opts.Name, SizeBytes: int64(len(content.Data))}
	info := assay.SourceInfo{SizeBytes: int64(len(content.Data)), Modified: content.Modified, Hash: hash}
	all := outcome{docs: map[string]bool{}}
	p := parsing{
		j: s.builder, file: file, content: content, sidecar: source.Sidecar{Metadata: meta, ACL: item.ACL},
		row:   store.Source{Collection: s.state.Collection, URI: item.URI, Info: info, ACL: item.ACL},
		known: known{docs: documents}, same: same, damaged: s.opts.Full,
		before: map[string]assay.Document{}, docs: all.docs,
		emit: func(o outcome) error {
			all.source = o.source
			all.entries = append(all.entries, o.entries...)
			all.skips = append(all.skips, o.skips...)
			all.notes = append(all.notes, o.notes...)
			all.pages = append(all.pages, o.pages...)
			return nil
		},
	}
	if err := p.run(ctx); err != nil {
		return all, err
	}
	if len(all.docs) > 0 {
		return all, nil
	}
	skip := &source.Skip{URI: item.URI, Reason: NoText, Detail: "it contains no document with text"}
	if len(all.skips) > 0 {
		first := all.skips[0]
		skip.Reason, skip.Detail = first.Reason, first.Detail
		if first.URI != item.URI {
			skip.Detail = strings.TrimPrefix(first.URI, item.URI+assay.PartSeparator) + ": " + first.Detail
		}
	}
	return all, skip
}

func skippedItem(s *source.Skip) *Skipped {
	return &Skipped{URI: s.URI, Reason: s.Reason, Detail: s.Detail}
}

// withACL returns an entry that changes the ACL of a stored document. The store needs no text or
// chunks for the current version.
func withACL(d assay.Document, acl assay.ACL) store.Entry {
	d.ACL = acl
	return store.Entry{Document: d}
}
