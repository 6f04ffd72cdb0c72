package relational

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"iter"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// A sourceKey names a source.
type sourceKey struct{ collection, uri string }

// selectSources selects the columns that scanSource reads.
const selectSources = `
SELECT c.name, s.uri, s.path, s.size, s.modified, s.hash, s.acl, s.same_as, f.uri, f.reason, f.detail, f.failed
FROM sources s
JOIN collections c ON c.number = s.collection
LEFT JOIN failures f ON f.source = s.number
`

// sourcesQuery selects the sources of the collections in a JSON array, NULL for all.
func sourcesQuery(d Dialect) string {
	return selectSources + `WHERE CAST(?1 AS TEXT) IS NULL OR c.name IN (SELECT value FROM ` + d.List("?1") + ` j)
ORDER BY c.name, s.uri, f.uri`
}

// Sources implements store.Content.
func (c content) Sources(ctx context.Context, collections ...string) iter.Seq2[store.Source, error] {
	return func(yield func(store.Source, error) bool) {
		names, err := namesOf(collections)
		if err == nil {
			err = c.db.View(ctx, func(s Reader) error { return eachSource(ctx, s, sourcesQuery(c.db.Dialect()), []any{names}, yield) })
		}
		if err != nil && !errors.Is(err, errStop) {
			yield(store.Source{}, wrap(err, "list sources"))
		}
	}
}

// eachSource joins the rows of a source, one for each failure.
func eachSource(ctx context.Context, s Reader, query string, args []any, yield func(store.Source, error) bool) error {
	var last *store.Source
	err := s.Each(ctx, query, args, func(scan func(...any) error) error {
		next, failure, err := scanSource(scan)
		if err != nil {
			return err
		}
		if last == nil || last.Collection != next.Collection || last.URI != next.URI {
			if last != nil && !yield(*last, nil) {
				return errStop
			}
			last = &next
		}
		if failure != nil {
			last.Failures = append(last.Failures, *failure)
		}
		return nil
	})
	if err == nil && last != nil && !yield(*last, nil) {
		return errStop
	}
	return err
}

const (
	sourceQuery = selectSources + `WHERE c.name = ?1 AND s.uri = ?2 ORDER BY f.uri`

	// The range lets the index find the documents inside the source. Few others are in it.
	sourceDocumentsQuery = `
SELECT ` + documentColumns + `
FROM documents d
JOIN collections c ON c.number = d.collection
JOIN versions v ON v.number = d.version
WHERE c.name = ?1 AND d.uri >= ?2 AND d.uri < ?3 AND (d.uri = ?2 OR d.container = ?2)
ORDER BY d.uri`

	sourceAliasesQuery = `
SELECT s.uri FROM sources s JOIN collections c ON c.number = s.collection
WHERE c.name = ?1 AND s.same_as = ?2 AND s.same_as <> '' ORDER BY s.uri`
)

// Source implements store.Content.
func (c content) Source(ctx context.Context, collection, uri string) (source store.Source, documents []assay.Document, err error) {
	err = c.db.View(ctx, func(s Reader) error {
		err := eachSource(ctx, s, sourceQuery, []any{collection, uri}, func(found store.Source, _ error) bool {
			source = found
			return true
		})
		if err != nil {
			return err
		}
		documents, err = sourceDocuments(ctx, s, collection, uri)
		return err
	})
	if err != nil {
		return store.Source{}, nil, wrap(err, "source %s", uri)
	}
	return source, documents, nil
}

// sourceDocuments returns the documents of a source.
func sourceDocuments(ctx context.Context, s Reader, collection, uri string) (documents []assay.Document, err error) {
	var aliases []string
	err = s.Each(ctx, sourceAliasesQuery, []any{collection, uri}, func(scan func(...any) error) error {
		var alias string
		err := scan(&alias)
		aliases = append(aliases, alias)
		return err
	})
	if err != nil {
		return nil, err
	}
	afterParts := uri + assay.PartSeparator[:len(assay.PartSeparator)-1] + "0" // the byte after "/"
	err = s.Each(ctx, sourceDocumentsQuery, []any{collection, uri, afterParts}, func(scan func(...any) error) error {
		var d assay.Document
		if _, err := scanDocument(scan, &d); err != nil {
			return err
		}
		setAliases(&d, aliases)
		documents = append(documents, d)
		return nil
	})
	return documents, err
}

// scanSource reads a row of selectSources.
func scanSource(scan func(...any) error) (s store.Source, f *store.Failure, err error) {
	var path, modified, acl string
	var uri, reason, detail, failed sql.NullString
	err = scan(&s.Collection, &s.URI, &path, &s.Info.SizeBytes, &modified, &s.Info.Hash, &acl, &s.SameAs, &uri, &reason, &detail, &failed)
	if err != nil {
		return s, nil, err
	}
	if err := decodeJSON("path of source "+s.URI, path, &s.Path); err != nil {
		return s, nil, err
	}
	if err := decodeJSON("ACL of source "+s.URI, acl, &s.ACL); err != nil {
		return s, nil, err
	}
	if s.Info.Modified, err = decodeTime(modified); err != nil || !uri.Valid {
		return s, nil, err
	}
	f = &store.Failure{URI: uri.String, Reason: reason.String, Detail: detail.String}
	f.Time, err = decodeTime(failed.String)
	return s, f, err
}

// checkSources checks the sources of a batch.
func checkSources(b store.Batch) error {
	seen := make(map[sourceKey]bool, len(b.Sources))
	for _, s := range append(b.Forget[:len(b.Forget):len(b.Forget)], b.Sources...) {
		if err := checkName("collection", s.Collection); err != nil {
			return err
		}
		key := sourceKey{s.Collection, s.URI}
		switch {
		case s.URI == "" || !utf8.ValidString(s.URI):
			return invalid("the URI %q of a source is empty or not UTF-8", s.URI)
		case seen[key]:
			return invalid("source %s is there twice", s.URI)
		case s.SameAs == s.URI:
			return invalid("source %s is the same as itself", s.URI)
		case !assay.ValidTime(s.Info.Modified):
			return invalid("source %s: its time is in the year %d", s.URI, s.Info.Modified.Year())
		}
		seen[key] = true
		failed := make(map[string]bool, len(s.Failures))
		for _, f := range s.Failures {
			if f.URI == "" || failed[f.URI] || !assay.ValidTime(f.Time) {
				return invalid("source %s: failure %q has no URI, is there twice or has no time", s.URI, f.URI)
			}
			failed[f.URI] = true
		}
	}
	return nil
}

// forget removes a source. It ignores one that does not exist.
func (p *change) forget(ctx context.Context, s store.Source) error {
	n, err := p.t.Exec(ctx, `
DELETE FROM sources WHERE collection = (SELECT number FROM collections WHERE name = ?) AND uri = ?`, s.Collection, s.URI)
	if n > 0 {
		p.log.Files = append(p.log.Files, fileAct{File: fileID(s.Collection, s.URI)})
	}
	return err
}

// setSource replaces a source and its failures.
func (p *change) setSource(ctx context.Context, s store.Source) error {
	c, err := p.collection(ctx, s.Collection)
	if err != nil {
		return err
	}
	path, err := json.Marshal(s.Path)
	if err != nil {
		return invalid("path: %v", err)
	}
	acl, err := json.Marshal(s.ACL)
	if err != nil {
		return invalid("ACL: %v", err)
	}
	if err := p.forget(ctx, s); err != nil {
		return err
	}
	number, err := p.t.Insert(ctx, `
INSERT INTO sources (collection, uri, path, size, modified, hash, acl, same_as) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		c.number, s.URI, string(path), s.Info.SizeBytes, encodeTime(s.Info.Modified), s.Info.Hash, string(acl), s.SameAs)
	if err != nil {
		return err
	}
	for _, f := range s.Failures {
		_, err := p.t.Exec(ctx, `INSERT INTO failures (source, uri, reason, detail, failed) VALUES (?, ?, ?, ?, ?)`,
			number, f.URI, f.Reason, f.Detail, encodeTime(f.Time))
		if err != nil {
			return err
		}
	}
	row, err := fileRow(ctx, p.t, number)
	p.log.Files = append(p.log.Files, fileAct{File: fileID(s.Collection, s.URI), Row: row})
	return err
}

const aliasesQuery = `
SELECT s.uri FROM sources s JOIN collections c ON c.number = s.collection
WHERE c.name = ? AND s.same_as = ? AND s.same_as <> '' ORDER BY s.uri`

// loadAliases sets the aliases of a document.
func loadAliases(ctx context.Context, r Reader, d *assay.Document) error {
	var uris []string
	err := r.Each(ctx, aliasesQuery, []any{d.Collection, d.SourceURI()}, func(scan func(...any) error) error {
		var uri string
		err := scan(&uri)
		uris = append(uris, uri)
		return err
	})
	setAliases(d, uris)
	return err
}

// allAliases returns the URIs of the sources that are the same as another, by that.
func allAliases(ctx context.Context, s Reader) (map[sourceKey][]string, error) {
	all := map[sourceKey][]string{}
	err := s.Each(ctx, `
SELECT c.name, s.same_as, s.uri FROM sources s JOIN collections c ON c.number = s.collection
WHERE s.same_as <> '' ORDER BY s.uri`, nil, func(scan func(...any) error) error {
		var key sourceKey
		var uri string
		err := scan(&key.collection, &key.uri, &uri)
		all[key] = append(all[key], uri)
		return err
	})
	return all, err
}

// setAliases sets the aliases of a document from the URIs of the sources that are the same as its
// own.
func setAliases(d *assay.Document, sources []string) {
	inside := d.URI[len(d.SourceURI()):]
	for _, uri := range sources {
		d.Aliases = append(d.Aliases, uri+inside)
	}
}
