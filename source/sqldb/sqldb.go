// Package sqldb reads the rows of a query as documents, from PostgreSQL, MySQL, SQL Server or SQLite,
// or from Amazon Aurora through the RDS Data API.
package sqldb

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/source/sqldb/rdsdata"
)

// Kind returns the kind of source.
func Kind() source.Kind {
	return source.Kind{
		Name: "sql", Short: "rows of PostgreSQL, MySQL, SQL Server or SQLite", Target: "postgres://USER@HOST/DB, mysql://…, sqlserver://… or sqlite:PATH",
		Help: `Reads one document from each row of a query. A sync lists the identities of all rows, which
also finds the deleted ones, and fetches those that changed: by the column "updated", or
without one by all their columns. The acl column holds "user:NAME" and "group:NAME",
separated by commas or as a JSON list; an empty one denies access to all, and a row whose acl
is NULL is not read. The account needs no more than the right to read.`,
		Options: []source.Option{
			{Name: "query", Help: "SELECT statement without ORDER BY, such as: SELECT * FROM articles"},
			{Name: "id", Default: "id", Help: "column that identifies a row"},
			{Name: "text", Help: "columns with the text, separated by commas; several become sections"},
			{Name: "title", Help: "column with the title"},
			{Name: "updated", Help: "column that changes with the row, such as a time or a version"},
			{Name: "acl", Help: "column with the ACL"},
			{Name: "metadata", Help: "columns that become metadata, separated by commas"},
			{Name: "uri", Help: "address of a row for people, with {id}, such as https://example.com/articles/{id}"},
			{Name: "format", Default: "md", Help: "extension that hints at the format of the text, such as md, html or txt"},
		},
		Credentials: []source.Credential{{Name: "password", Env: "ASSAY_SQL_PASSWORD", Help: "password of the user", Optional: true}},
		SweepOnly:   true,
		Absolute:    absolute,
		Open:        open,
	}
}

type table struct {
	config   source.Config
	db       *sql.DB
	dialect  dialect
	query    string
	id       string
	title    string
	updated  string
	acl      string
	text     []string
	metadata []string
	uri      string
	format   string
}

func open(_ context.Context, c source.Config) (source.Source, error) {
	t, err := newTable(c)
	if err != nil {
		return nil, err
	}
	password, err := t.config.Credential("password")
	if err != nil {
		return nil, err
	}
	db, dialect, err := connect(c.Target, password, t.config.Dial)
	if err != nil {
		return nil, err
	}
	t.dialect = dialect
	t.use(db)
	return t, nil
}

// newTable returns a table without a database, after checking the options.
func newTable(c source.Config) (*table, error) {
	o := c.Options
	t := &table{
		config: c.WithDefaults(), query: strings.TrimRight(o["query"], "; \t\n"), id: o["id"], title: o["title"], updated: o["updated"],
		acl: o["acl"], text: columns(o["text"]), metadata: columns(o["metadata"]), uri: o["uri"], format: strings.TrimPrefix(o["format"], "."),
	}
	switch {
	case t.query == "":
		return nil, fmt.Errorf("option query is empty: %w", assay.ErrInvalid)
	case len(t.text) == 0:
		return nil, fmt.Errorf("option text names no column: %w", assay.ErrInvalid)
	case t.uri != "" && !strings.Contains(t.uri, "{id}"):
		return nil, fmt.Errorf("option uri is %q, want it to contain {id}: %w", t.uri, assay.ErrInvalid)
	}
	for _, name := range append(t.listed(), t.text...) {
		if !columnName.MatchString(name) {
			return nil, fmt.Errorf("%q is no name of a column: %w", name, assay.ErrInvalid)
		}
	}
	return t, nil
}

// use sets the database.
func (t *table) use(db *sql.DB) {
	const connections = 4
	db.SetMaxOpenConns(connections)
	db.SetConnMaxIdleTime(time.Minute)
	t.db = db
}

// columnName matches names that need no escape in quotes.
var columnName = lazyregexp.New(`^[\pL_][\pL\pN_$ ]*$`)

func columns(list string) []string {
	var names []string
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// listed returns the columns of a listing: the identity, and those that are not empty of title,
// updated, acl and metadata.
func (t *table) listed() []string {
	names := []string{t.id}
	for _, name := range append([]string{t.title, t.updated, t.acl}, t.metadata...) {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}

func (t *table) Changes(ctx context.Context, _ string) iter.Seq2[source.Change, error] {
	return source.ChangesOf(t.Sweep(ctx))
}

func (t *table) Sweep(ctx context.Context) iter.Seq2[source.Item, error] {
	return func(yield func(source.Item, error) bool) {
		if err := t.sweep(ctx, yield); err != nil && !errors.Is(err, errStopped) {
			yield(source.Item{}, t.failed(ctx, err))
		}
	}
}

// errStopped means that the consumer of a listing has stopped.
var errStopped = errors.New("stopped")

func (t *table) sweep(ctx context.Context, yield func(source.Item, error) bool) error {
	names := t.listed()
	if t.updated == "" {
		names = append(names, t.text...)
	}
	statement := fmt.Sprintf("SELECT %s FROM (%s) AS q ORDER BY %s", t.dialect.list(names), t.query, t.dialect.quote(t.id))
	if t.dialect.snapshot {
		return t.sweepSnapshot(ctx, statement, names, yield)
	}
	rows, err := t.run(ctx, statement)
	if err != nil {
		return err
	}
	defer rows.Close()
	return t.each(rows, names, yield)
}

// each yields the item of each row.
func (t *table) each(rows *sql.Rows, names []string, yield func(source.Item, error) bool) error {
	last := ""
	for rows.Next() {
		row, err := scan(rows, names)
		if err != nil {
			return err
		}
		item, err := t.item(row)
		if err == nil && item.URI == last {
			return fmt.Errorf("the column %s is not unique: several rows have %v: %w", t.id, row[t.id], assay.ErrInvalid)
		}
		last = item.URI
		if !yield(item, err) {
			return errStopped
		}
	}
	return rows.Err()
}

// sweepSnapshot yields the items of a listing after all of it was read in one transaction. Until then
// it can be read again, and the transaction does not end while a consumer takes its time.
func (t *table) sweepSnapshot(ctx context.Context, statement string, names []string, yield func(source.Item, error) bool) error {
	type listed struct {
		item source.Item
		err  error
	}
	var items []listed
	err := t.config.Retry(ctx, func(ctx context.Context) error {
		items = nil
		tx, err := t.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true, Isolation: sql.LevelRepeatableRead})
		if err != nil {
			return err
		}
		defer tx.Rollback()
		rows, err := tx.QueryContext(ctx, statement)
		if err != nil {
			return err
		}
		defer rows.Close()
		return t.each(rows, names, func(item source.Item, err error) bool {
			items = append(items, listed{item, err})
			return true
		})
	})
	if err != nil {
		return err
	}
	for _, i := range items {
		if !yield(i.item, i.err) {
			return errStopped
		}
	}
	return nil
}

// run sends a query. A connection that cannot be made is tried again.
func (t *table) run(ctx context.Context, statement string, args ...any) (rows *sql.Rows, err error) {
	err = t.config.Retry(ctx, func(ctx context.Context) error {
		rows, err = t.db.QueryContext(ctx, statement, args...)
		if err != nil && ctx.Err() == nil && isConnection(err) {
			return &source.TransientError{Err: err}
		}
		return err
	})
	return rows, err
}

// scan reads the row into values by column.
func scan(rows *sql.Rows, names []string) (map[string]any, error) {
	values := make([]any, len(names))
	dest := make([]any, len(names))
	for i := range values {
		dest[i] = &values[i]
	}
	if err := rows.Scan(dest...); err != nil {
		return nil, err
	}
	row := map[string]any{}
	for i, name := range names {
		row[name] = values[i]
		if b, ok := values[i].([]byte); ok {
			row[name] = string(b)
		}
	}
	return row, nil
}

// A key is the identity of a row in the form that Fetch needs.
type key struct {
	Number *int64 `json:"number,omitempty"`
	Text   string `json:"text,omitempty"`
	Type   string `json:"type,omitempty"` // of a text in Aurora: typeUUID, typeDecimal or empty
}

// The types of keys that the RDS Data API does not compare with strings.
const (
	typeUUID    = "uuid"
	typeDecimal = "decimal"
)

// keyOf returns the key of a row by its identity and the text of that.
func keyOf(id any, text string) key {
	switch id := id.(type) {
	case int64:
		return key{Number: &id}
	case rdsdata.UUID:
		return key{Text: text, Type: typeUUID}
	case rdsdata.Decimal:
		return key{Text: text, Type: typeDecimal}
	}
	return key{Text: text}
}

// parameter returns the parameter that selects the row.
func (k key) parameter() any {
	switch {
	case k.Number != nil:
		return *k.Number
	case k.Type == typeUUID:
		return rdsdata.UUID(k.Text)
	case k.Type == typeDecimal:
		return rdsdata.Decimal(k.Text)
	}
	return k.Text
}

// item describes a row.
func (t *table) item(row map[string]any) (source.Item, error) {
	id := text(row[t.id])
	item := source.Item{URI: t.address(id), Name: "row." + t.format, Metadata: assay.Metadata{}}
	if row[t.id] == nil || id == "" || !validText(id) {
		return source.Item{}, &source.Skip{URI: item.URI, Reason: source.Unsupported, Detail: "a row has no value in the column " + t.id}
	}
	ref, err := json.Marshal(keyOf(row[t.id], id))
	if err != nil {
		return source.Item{}, err
	}
	item.Ref = string(ref)
	item.Version = t.version(row)
	for _, name := range t.metadata {
		if v, ok := value(row[name]); ok {
			item.Metadata[strings.ToLower(name)] = v
		}
	}
	if t.title != "" && text(row[t.title]) != "" {
		item.Metadata[assay.MetaTitle] = assay.StringValue(text(row[t.title]))
	}
	if when, ok := row[t.updated].(time.Time); ok && assay.ValidTime(when) {
		item.Metadata[assay.MetaModified] = assay.TimeValue(when)
	}
	if t.acl == "" {
		return item, nil
	}
	if item.ACL, err = parseACL(row[t.acl]); err != nil {
		return source.Item{}, &source.Skip{URI: item.URI, Reason: source.UnknownACL, Err: err,
			Detail: fmt.Sprintf("its column %s is no ACL, so who may see it is not known: %v", t.acl, err)}
	}
	return item, nil
}

// parseACL parses a list of principals separated by commas or white space, a JSON list, or an array
// of PostgreSQL. NULL is an error.
func parseACL(v any) (assay.ACL, error) {
	if v == nil {
		return assay.ACL{}, errors.New("it is NULL")
	}
	list := strings.TrimSpace(text(v))
	var names []string
	switch {
	case strings.HasPrefix(list, "["):
		if err := json.Unmarshal([]byte(list), &names); err != nil {
			return assay.ACL{}, err
		}
	case strings.HasPrefix(list, "{") && strings.HasSuffix(list, "}"):
		for name := range strings.SplitSeq(list[1:len(list)-1], ",") {
			if name = strings.Trim(name, `"`); name != "" {
				names = append(names, name)
			}
		}
	default:
		names = strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == '\n' || r == ';' })
		for i := range names {
			names[i] = strings.TrimSpace(names[i])
		}
	}
	return assay.RestrictTo(names...)
}

// address returns the URI of a row.
func (t *table) address(id string) string {
	if t.uri != "" {
		return strings.ReplaceAll(t.uri, "{id}", url.PathEscape(id))
	}
	return strings.TrimSuffix(t.dialect.address, "/") + "#" + url.PathEscape(id)
}

func (t *table) Fetch(ctx context.Context, item source.Item) (source.Content, error) {
	var k key
	if err := json.Unmarshal([]byte(item.Ref), &k); err != nil {
		return source.Content{}, fmt.Errorf("row %s: %w: %w", item.URI, err, assay.ErrDamaged)
	}
	statement := fmt.Sprintf("SELECT %s FROM (%s) AS q WHERE %s = %s", t.dialect.list(t.text), t.query, t.dialect.quote(t.id), t.dialect.parameter)
	rows, err := t.run(ctx, statement, k.parameter())
	if errors.Is(err, rdsdata.ErrRowTooLarge) || errors.Is(err, rdsdata.ErrTooLarge) {
		return source.Content{}, &source.Skip{URI: item.URI, Reason: source.TooLarge, Err: err, Detail: "is larger than the 64 KB of a row of the RDS Data API"}
	}
	if err != nil {
		return source.Content{}, t.failed(ctx, err)
	}
	defer rows.Close()
	if !rows.Next() {
		if err := rows.Err(); err != nil {
			return source.Content{}, t.failed(ctx, err)
		}
		return source.Content{}, &source.Skip{URI: item.URI, Reason: source.Vanished, Detail: "was deleted before it could be read"}
	}
	row, err := scan(rows, t.text)
	if err != nil {
		return source.Content{}, t.failed(ctx, err)
	}
	data := t.document(row)
	if int64(len(data)) > t.config.MaxBytes {
		return source.Content{}, t.config.TooLarge(item.URI, int64(len(data)))
	}
	return source.Content{Data: data, Read: t.config.Now(), Modified: item.Metadata[assay.MetaModified].Time}, nil
}

// document returns the text of a row. Several columns become sections.
func (t *table) document(row map[string]any) []byte {
	if len(t.text) == 1 {
		return []byte(text(row[t.text[0]]))
	}
	var b strings.Builder
	for _, name := range t.text {
		body := strings.TrimSpace(text(row[name]))
		switch {
		case body == "":
		case t.format == "html" || t.format == "htm":
			fmt.Fprintf(&b, "<h2>%s</h2>\n%s\n", name, body)
		case t.format == "md":
			fmt.Fprintf(&b, "## %s\n\n%s\n\n", name, body)
		default:
			fmt.Fprintf(&b, "%s:\n\n%s\n\n", name, body)
		}
	}
	return []byte(b.String())
}

// failed returns the error of a query.
func (t *table) failed(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, rdsdata.ErrRowTooLarge):
		return fmt.Errorf("%s: list the rows; the option updated keeps the texts out of the listing: %w: %w", t.dialect.address, err, assay.ErrInvalid)
	case isRefusal(err):
		return fmt.Errorf("%s: %w: %w", t.dialect.address, err, source.ErrCredentials)
	case errors.Is(err, assay.ErrUnavailable), errors.Is(err, assay.ErrInvalid):
		return fmt.Errorf("%s: %w", t.dialect.address, err)
	}
	return fmt.Errorf("%s: %w: %w", t.dialect.address, err, assay.ErrUnavailable)
}

func (t *table) Close() error { return t.db.Close() }
