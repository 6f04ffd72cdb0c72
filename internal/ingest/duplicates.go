package ingest

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/store"
)

// Sources of a collection with the same bytes, kind of name, sidecar metadata and ACL share one set
// of documents, those of the source with the smallest URI. The others have a row that names it in
// SameAs. The writer keeps two rules, so that a process killed at any moment leaves a state that
// the next Run completes:
//
//   - Before the documents of a source that others are the same as are changed or deleted, one of
//     the others gets copies of them.
//   - A row that names another is only believed if that one is stored with the same content.

// keyOf returns a word that is equal for sources that may share documents, or "" for a source that
// shares none: one that is no file, and one that is not complete.
func keyOf(s store.Source) string {
	if s.Info.Hash == "" || !isFile(s.URI) {
		return ""
	}
	acl, err := json.Marshal(s.ACL)
	if err != nil {
		panic("ingest: an ACL has no JSON: " + err.Error()) // impossible: it has strings only
	}
	kind := strings.ToLower(path.Ext(s.URI))
	if kind == "" {
		kind = path.Base(s.URI) // the whole name may tell the format
	}
	f := parseFingerprint(s.Info.Hash)
	f.racy = false
	return strings.Join([]string{kind, f.String(), string(acl)}, "\n")
}

// isFile reports whether a URI is that of a file of this machine, and not that of standard input, an
// upload or a web page.
func isFile(uri string) bool {
	return !strings.HasPrefix(uri, source.FromStdin+":") && !strings.HasPrefix(uri, source.FromUpload+":") && !strings.Contains(uri, "://")
}

// stored is a source as the writer has stored it.
type stored struct {
	source store.Source
	row    bool              // source is stored; otherwise only a document with its URI is
	docs   map[string]string // URI → version
	isNew  bool              // first stored in this run
}

func newStored(k known) *stored {
	s := &stored{source: k.source, row: k.row, docs: make(map[string]string, len(k.docs))}
	for _, d := range k.docs {
		s.docs[d.URI] = d.Version
	}
	return s
}

// holds reports whether others with the key can share the documents of s.
func (s *stored) holds(key string) bool {
	if s == nil || key == "" {
		return false
	}
	hasDocuments := s.source.SameAs == "" && len(s.docs) > 0
	return hasDocuments && keyOf(s.source) == key
}

// claims records which source has the documents of each content, as far as the workers know.
type claims struct {
	mu      sync.Mutex
	holders map[string]string // key → URI
	keys    map[string]string // URI → key, of those stored before
}

// load claims the contents of the stored sources.
func (c *claims) load(all map[string]*stored) {
	c.holders, c.keys = map[string]string{}, map[string]string{}
	for uri, s := range all {
		key := keyOf(s.source)
		if !s.holds(key) {
			continue
		}
		c.keys[uri] = key
		if first, ok := c.holders[key]; !ok || uri < first {
			c.holders[key] = uri
		}
	}
}

// claim returns the source that has the documents of a content, which is uri if no other has.
func (c *claims) claim(key, uri string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if holder, ok := c.holders[key]; ok {
		return holder
	}
	c.holders[key] = uri
	return uri
}

// holds reports whether a source was stored with the documents of a content.
func (c *claims) holds(uri, key string) bool { return key != "" && c.keys[uri] == key }

// aliases returns the URIs of the sources that share the documents of uri, sorted.
func (j *job) aliases(uri string) []string {
	if j.stored[uri] == nil {
		return nil
	}
	key := keyOf(j.stored[uri].source)
	return slices.DeleteFunc(sortedKeys(j.same[uri]), func(other string) bool { return keyOf(j.stored[other].source) != key })
}

// release gives the documents of a source to the first of the sources that share them, and reports
// whether there is one. The caller is about to change or delete the source's own.
func (j *job) release(ctx context.Context, uri string) (bool, error) {
	heirs := j.aliases(uri)
	if len(heirs) == 0 || len(j.stored[uri].docs) == 0 {
		return false, nil
	}
	j.heirs[heirs[0]] = true
	return true, j.move(ctx, uri, heirs[0])
}

// setSource records the state of a source, to be stored with the batch.
func (j *job) setSource(row store.Source) {
	s := j.stored[row.URI]
	if s == nil {
		s = &stored{docs: map[string]string{}, isNew: true}
		j.stored[row.URI] = s
	}
	delete(j.same[s.source.SameAs], row.URI)
	s.source, s.row = row, true
	j.shares(row)
	j.batch.setSource(row)
}

// shares records that a source shares the documents of another.
func (j *job) shares(row store.Source) {
	if row.SameAs == "" {
		return
	}
	if j.same[row.SameAs] == nil {
		j.same[row.SameAs] = map[string]bool{}
	}
	j.same[row.SameAs][row.URI] = true
}

// forget removes a source with its documents and returns how many those are. Documents that live on
// under another URI do not count.
func (j *job) forget(ctx context.Context, uri string) (int, error) {
	released, err := j.release(ctx, uri)
	if err != nil {
		return 0, err
	}
	s := j.stored[uri]
	for _, doc := range sortedKeys(s.docs) {
		j.batch.remove(assay.DocumentID(j.collection, doc), doc)
	}
	delete(j.same[s.source.SameAs], uri)
	delete(j.stored, uri)
	j.batch.forget(store.Source{Collection: j.collection, URI: uri})
	if released {
		return 0, nil
	}
	return len(s.docs), nil
}

// move stores copies of a source's documents as those of another with the same content, and makes
// the others that were the same as from the same as to.
func (j *job) move(ctx context.Context, from, to string) error {
	if err := j.commit(ctx); err != nil { // the documents may be in the batch
		return err
	}
	heirs := j.aliases(from)
	docs := j.stored[from].docs
	for _, uri := range sortedKeys(docs) {
		e, err := j.copied(ctx, uri, docs[uri], from, to)
		if err != nil {
			return fmt.Errorf("copy document %s: %w", uri, err)
		}
		j.batch.add(e)
		j.stored[to].docs[e.Document.URI] = e.Document.Version
		if j.batch.full() {
			if err := j.commit(ctx); err != nil {
				return err
			}
		}
	}
	for _, uri := range heirs {
		row := j.stored[uri].source
		if row.SameAs = to; uri == to {
			row.SameAs, row.Failures = "", movedFailures(j.stored[from].source.Failures, from, to)
		}
		j.setSource(row)
	}
	return nil
}

// movedFailures returns the failures in a source as those in another with the same content.
func movedFailures(failures []store.Failure, from, to string) []store.Failure {
	moved := slices.Clone(failures)
	for i := range moved {
		moved[i].URI = to + moved[i].URI[len(from):]
	}
	return moved
}

// copied returns a document of one source as that of another with the same content.
func (j *job) copied(ctx context.Context, uri, version, from, to string) (store.Entry, error) {
	id := assay.DocumentID(j.collection, uri)
	d, err := j.content.Version(ctx, id, version)
	if err != nil {
		return store.Entry{}, err
	}
	chunks, err := j.content.Chunks(ctx, id, version)
	if err != nil {
		return store.Entry{}, err
	}
	target := j.stored[to].source
	inside := strings.TrimPrefix(uri[len(from):], assay.PartSeparator)
	d.Metadata = movedMetadata(d, target, path.Base(from), inside)
	d.URI, d.ACL, d.Aliases = to+uri[len(from):], target.ACL, nil
	d.Title = d.Metadata[assay.MetaTitle].String
	if d.Container != "" {
		d.Container = to
		d.Source.Modified, d.Source.Hash = target.Info.Modified, target.Info.Hash
	} else {
		d.Source = target.Info
	}
	d.ID = assay.DocumentID(j.collection, d.URI)
	pipeline := j.pipeline
	if by := parseFingerprint(target.Info.Hash).pipeline; by != hash([]byte(pipeline)) {
		pipeline = "copied from a document of pipeline " + by // the next ingest of its file replaces it
	}
	d.Version = assay.DocumentVersion(d.Text, d.Metadata, pipeline)
	ids := map[string]string{}
	for _, c := range chunks {
		ids[c.ID] = assay.ChunkID(d.ID, d.Version, c.Ordinal)
	}
	for i := range chunks {
		c := &chunks[i]
		c.ID, c.Document, c.Version = ids[c.ID], d.ID, d.Version
		if c.Parent != "" {
			c.Parent = ids[c.Parent]
		}
	}
	return store.Entry{Document: d, Chunks: chunks}, nil
}

// movedMetadata returns the metadata that a document has in another source with the same content:
// its own path and time, and its name as the title if that was the title.
func movedMetadata(d assay.Document, to store.Source, oldName, inside string) assay.Metadata {
	m := make(assay.Metadata, len(d.Metadata))
	for key, v := range d.Metadata {
		m[key] = v
	}
	if modified, ok := m[assay.MetaModified]; ok && modified.Equal(assay.TimeValue(d.Source.Modified)) && !to.Info.Modified.IsZero() {
		m[assay.MetaModified] = assay.TimeValue(to.Info.Modified)
	}
	delete(m, assay.MetaPath)
	if p := documentPath(to.Path, inside); len(p) > 0 {
		m[assay.MetaPath] = assay.ListValue(p...)
	}
	if inside != "" {
		m[assay.MetaContainer] = assay.StringValue(to.URI)
	} else if m[assay.MetaTitle].String == oldName {
		m[assay.MetaTitle] = assay.StringValue(path.Base(to.URI))
	}
	return m
}

// settle completes what the workers decided about files with the same content, once all files are
// known: it parses those whose content no other source has in the end, and gives the documents to
// the source with the smallest URI.
func (j *job) settle(ctx context.Context) error {
	if err := j.parseUnshared(ctx); err != nil {
		return err
	}
	groups := map[string][]string{} // key → URIs
	for uri, s := range j.stored {
		key := keyOf(s.source)
		shares := s.holds(key) || s.source.SameAs != "" && j.stored[s.source.SameAs].holds(key)
		if shares {
			groups[key] = append(groups[key], uri)
		}
	}
	for _, key := range sortedKeys(groups) {
		group := groups[key]
		if len(group) < 2 {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		slices.Sort(group)
		if err := j.merge(ctx, group); err != nil {
			return err
		}
	}
	return j.commit(ctx)
}

// countShared counts the files found that share the documents of another, and the documents of those
// that no longer do.
func (j *job) countShared() {
	for uri := range j.found {
		s := j.stored[uri]
		switch {
		case s == nil:
		case s.source.SameAs != "":
			j.report.Duplicates++
		case !j.heirs[uri]:
		case s.isNew:
			j.report.Added += len(s.docs)
			j.report.Skipped = append(j.report.Skipped, failedEarlier(s.source)...)
		default:
			j.report.Unchanged += len(s.docs)
			j.report.Skipped = append(j.report.Skipped, failedEarlier(s.source)...)
		}
	}
}

// parseUnshared parses the found files that were taken for copies of a source that has no documents
// or other ones.
func (j *job) parseUnshared(ctx context.Context) error {
	for _, uri := range sortedKeys(j.found) {
		s := j.stored[uri]
		if s == nil || s.source.SameAs == "" || j.stored[s.source.SameAs].holds(keyOf(s.source)) {
			continue
		}
		err := j.handle(ctx, j.found[uri], false, func(o outcome) error { return j.take(ctx, o) })
		if err == nil {
			err = j.commit(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// merge gives the documents of sources with the same content, sorted by URI, to the first of them.
func (j *job) merge(ctx context.Context, group []string) error {
	first := group[0]
	if from := j.stored[first].source.SameAs; from != "" {
		if err := j.move(ctx, from, first); err != nil {
			return err
		}
		for i, s := range j.report.Skipped {
			if s.URI == from || strings.HasPrefix(s.URI, from+assay.PartSeparator) {
				j.report.Skipped[i].URI = first + s.URI[len(from):]
			}
		}
	}
	for _, uri := range group[1:] {
		s := j.stored[uri]
		if s.source.SameAs == first && len(s.docs) == 0 {
			continue
		}
		for _, doc := range sortedKeys(s.docs) {
			j.batch.remove(assay.DocumentID(j.collection, doc), doc)
		}
		row := s.source
		row.SameAs, row.Failures = first, nil
		clear(s.docs)
		j.setSource(row)
		if j.batch.full() {
			if err := j.commit(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// failedEarlier returns the failures of a source as entries of the report.
func failedEarlier(s store.Source) []Skipped {
	var all []Skipped
	for _, f := range s.Failures {
		all = append(all, Skipped{URI: f.URI, Reason: source.Reason(f.Reason), Detail: f.Detail, Earlier: true})
	}
	return all
}
