package relational

import (
	"context"
	"database/sql"
	"fmt"
	"math"

	"github.com/assay-rag/assay"
)

// checkCollections compares the collections.
func (c *auditChecker) checkCollections(ctx context.Context) error {
	seen := map[string]bool{}
	err := c.content.Each(ctx, `SELECT name, require_acl, chunker, chunk_size, chunk_overlap FROM collections`, nil, func(scan func(...any) error) error {
		var name string
		var got collectionSet
		var requireACL int64
		if err := scan(&name, &requireACL, &got.Chunker, &got.ChunkSize, &got.ChunkOverlap); err != nil {
			return err
		}
		got.RequireACL = requireACL != 0
		seen[name] = true
		want, known := c.state.collections[name]
		switch {
		case !known:
			c.report(0, collectionObject(name), "it is stored, but the log does not have it")
		case got != want || requireACL != 0 && requireACL != 1:
			c.report(0, collectionObject(name), "its settings were altered")
		}
		return nil
	})
	for name := range c.state.collections {
		if !seen[name] {
			c.report(0, collectionObject(name), "it is missing")
		}
	}
	return err
}

func collectionObject(name string) string { return fmt.Sprintf("collection %q", name) }

// checkDocuments compares the documents and their current versions.
func (c *auditChecker) checkDocuments(ctx context.Context) error {
	type deleted struct {
		number int64
		id     string
	}
	var gone []deleted
	seen := map[string]bool{}
	err := c.content.Each(ctx, `
SELECT d.number, d.id, d.sequence, d.version, d.acl, v.version, v.document FROM documents d LEFT JOIN versions v ON v.number = d.version`,
		nil, func(scan func(...any) error) error {
			var number, sequence int64
			var id string
			var version, owner sql.NullInt64
			var acl, current sql.NullString
			if err := scan(&number, &id, &sequence, &version, &acl, &current, &owner); err != nil {
				return err
			}
			seen[id] = true
			want := c.state.documents[id]
			switch {
			case want == nil:
				c.report(0, "document "+id, "it is stored, but the log does not have it")
				return nil
			case version.Valid != (want.current != "") || current.String != want.current || version.Valid && owner.Int64 != number:
				c.report(want.entry, "document "+id, "its current version was altered")
			case version.Valid && acl.Valid:
				c.report(want.entry, "document "+id, "it has an ACL besides that of its version")
			case sequence != want.sequence:
				c.report(want.entry, "document "+id, "the number of its change was altered")
			}
			if want.current == "" {
				gone = append(gone, deleted{number, id})
			}
			return nil
		})
	if err != nil {
		return err
	}
	for _, d := range gone {
		row, err := deletedRow(ctx, c.content, d.number)
		if err != nil {
			return err
		}
		if want := c.state.documents[d.id]; row != want.row {
			c.report(want.entry, "document "+d.id, "it was altered since it was deleted")
		}
	}
	for id, want := range c.state.documents {
		if !seen[id] {
			c.report(want.entry, "document "+id, "it is missing")
		}
	}
	return nil
}

// A checkedVersion is a version in content.db.
type checkedVersion struct {
	number   int64
	pin      pin
	replaced int64
}

// checkVersions compares every version with its text, structure and chunks.
func (c *auditChecker) checkVersions(ctx context.Context) error {
	var stored []checkedVersion
	err := c.content.Each(ctx, `
SELECT v.number, d.id, v.version, v.replaced FROM versions v JOIN documents d ON d.number = v.document`, nil, func(scan func(...any) error) error {
		var v checkedVersion
		var replaced sql.NullInt64
		err := scan(&v.number, &v.pin.Document, &v.pin.Version, &replaced)
		v.replaced = replaced.Int64
		if replaced.Valid && v.replaced == 0 {
			v.replaced = math.MinInt64 // 0 stands for none
		}
		stored = append(stored, v)
		return err
	})
	if err != nil {
		return err
	}
	seen := map[pin]bool{}
	for _, v := range stored {
		seen[v.pin] = true
		if err := c.checkVersion(ctx, v); err != nil {
			return err
		}
	}
	for id, d := range c.state.documents {
		for version, want := range d.versions {
			if !seen[pin{id, version}] {
				c.report(want.entry, versionObject(pin{id, version}), "it is missing")
			}
		}
	}
	return nil
}

func versionObject(p pin) string {
	return fmt.Sprintf("document %s, version %s", p.Document, p.Version)
}

func (c *auditChecker) checkVersion(ctx context.Context, v checkedVersion) error {
	d := c.state.documents[v.pin.Document]
	if d == nil {
		return nil // reported by checkDocuments
	}
	want, known := d.versions[v.pin.Version]
	if !known {
		c.report(0, versionObject(v.pin), "it is stored, but the log does not have it")
		return nil
	}
	row, err := versionRow(ctx, c.content, v.number)
	if err != nil {
		return err
	}
	if row != want.row {
		c.report(want.entry, versionObject(v.pin), "it was altered")
	}
	if v.replaced != want.replaced {
		c.report(want.entry, versionObject(v.pin), "the time at which it was replaced was altered")
	}
	_, err = loadPieces(ctx, c.content, v.number, 0, math.MaxInt64, func(piece) error { return nil })
	if err == nil {
		err = loadStructure(ctx, c.content, v.number, &assay.Document{})
	}
	if err == nil {
		_, err = loadOriginal(ctx, c.content, v.number)
	}
	if isDamage(err) {
		c.report(want.entry, versionObject(v.pin), "%v", err)
		return nil
	}
	return err
}

// checkFiles compares the rows of sources.
func (c *auditChecker) checkFiles(ctx context.Context) error {
	type file struct {
		number          int64
		collection, uri string
	}
	var stored []file
	err := c.content.Each(ctx, `SELECT s.number, c.name, s.uri FROM sources s JOIN collections c ON c.number = s.collection`, nil, func(scan func(...any) error) error {
		var f file
		err := scan(&f.number, &f.collection, &f.uri)
		stored = append(stored, f)
		return err
	})
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, f := range stored {
		id := fileID(f.collection, f.uri)
		seen[id] = true
		row, err := fileRow(ctx, c.content, f.number)
		if err != nil {
			return err
		}
		want, known := c.state.files[id]
		switch {
		case !known:
			c.report(0, "file "+f.uri, "it is stored, but the log does not have it")
		case row != want.row:
			c.report(want.entry, "file "+f.uri, "it was altered")
		}
	}
	for id, want := range c.state.files {
		if !seen[id] {
			c.report(want.entry, "file "+id, "it is missing")
		}
	}
	return nil
}

// checkSources compares the settings of the sources of documents.
func (c *auditChecker) checkSources(ctx context.Context) error {
	var names []string
	err := c.content.Each(ctx, `SELECT name FROM sync_sources`, nil, func(scan func(...any) error) error {
		var name string
		err := scan(&name)
		names = append(names, name)
		return err
	})
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, name := range names {
		seen[name] = true
		row, err := syncSourceRow(ctx, c.content, name)
		if err != nil {
			return err
		}
		want, known := c.state.sources[name]
		switch {
		case !known:
			c.report(0, "source "+name, "it is stored, but the log does not have it")
		case row != want:
			c.report(0, "source "+name, "it was altered")
		}
	}
	for name := range c.state.sources {
		if !seen[name] {
			c.report(0, "source "+name, "it is missing")
		}
	}
	return nil
}
