package pgvector

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/lazyregexp"
)

// format identifies the content of the tables. It grows with a change of the tables or of the terms
// that texts have. An index of an older format is read from the source again.
const format = 1000*2 + analysis.Version

// statements create the tables of an empty schema. All strings from documents are encoded by
// encode. Numbers (no) are assigned by the writer.
//
// A term is the first 8 bytes of the SHA-256 of a word or an entity's key, see termOf.
var statements = []string{
	// state has one row. epoch is new whenever the index is read from the beginning.
	`CREATE TABLE state (format integer NOT NULL, identity text NOT NULL, epoch bigint NOT NULL, sequence bigint NOT NULL)`,

	// A class is the set of the documents of one collection with one ACL. key is a hash of both.
	`CREATE TABLE class (no integer PRIMARY KEY, key bytea NOT NULL UNIQUE, collection text NOT NULL, restricted boolean NOT NULL, allow text[] NOT NULL)`,

	// count has sums over the documents of a class, see counts.
	`CREATE TABLE count (what text NOT NULL, name text NOT NULL, class integer NOT NULL, n bigint NOT NULL, PRIMARY KEY (what, name, class))`,
	`CREATE INDEX count_class ON count (class)`,

	// term has the number of chunks of a class that have a word or name an entity.
	`CREATE TABLE term (term bigint NOT NULL, class integer NOT NULL, n integer NOT NULL, PRIMARY KEY (term, class))`,

	// metadata maps keys to values as strings, numbers, booleans and lists; null is a time. times
	// has, for times and for strings that are dates, the nanoseconds since 1970. digest is a hash of
	// all that the rows of a document are made of but the class.
	`CREATE TABLE document (no bigint PRIMARY KEY, id uuid NOT NULL UNIQUE, version uuid NOT NULL, digest bytea NOT NULL, class integer NOT NULL,
		language text NOT NULL, metadata jsonb NOT NULL, times jsonb NOT NULL, chunks integer NOT NULL, length bigint NOT NULL)`,
	`CREATE INDEX document_class ON document (class)`,

	// terms are sorted, and frequencies has the weighted frequency of each. A search reads both of every
	// chunk that it scores, so that they are stored in the row even if they are long.
	`CREATE TABLE chunk (no bigint PRIMARY KEY, id uuid NOT NULL UNIQUE, document bigint NOT NULL, class integer NOT NULL,
		length integer NOT NULL, terms bigint[] NOT NULL, frequencies integer[] NOT NULL) WITH (toast_tuple_target = 8160)`,
	`CREATE INDEX chunk_document ON chunk (document)`,

	// passage has the entities that a chunk names.
	`CREATE TABLE passage (chunk bigint PRIMARY KEY, id uuid NOT NULL, document bigint NOT NULL, class integer NOT NULL,
		terms bigint[] NOT NULL, keys text[] NOT NULL, titles boolean[] NOT NULL)`,
	`CREATE INDEX passage_document ON passage (document)`,
	`CREATE UNIQUE INDEX passage_id ON passage (id)`,

	// sequence is that of the source up to which the vectors of a model are complete. They are in
	// the table vector_NO, which exists if dimensions is not 0. No number is used twice.
	`CREATE SEQUENCE model_no AS integer`,
	`CREATE TABLE model (no integer PRIMARY KEY, name text NOT NULL UNIQUE, dimensions integer NOT NULL, sequence bigint NOT NULL)`,
}

// inverted are the indexes on terms. They are created after the first documents have been read,
// which is several times faster.
var inverted = []string{
	`CREATE INDEX IF NOT EXISTS chunk_terms ON chunk USING gin (terms)`,
	`CREATE INDEX IF NOT EXISTS passage_terms ON passage USING gin (terms)`,
}

// SchemaOf returns the name of the schema of a source's index.
func SchemaOf(identity string) string {
	if !plainIdentity.MatchString(identity) {
		sum := sha256.Sum256([]byte(identity))
		identity = "x" + hex.EncodeToString(sum[:16])
	}
	return "assay_index_" + identity
}

// plainIdentity matches identities that can be part of the name of a schema, which has at most 63
// bytes. The hash of another identity begins with x, as no plain one of its length does.
var plainIdentity = lazyregexp.New(`^[a-wyz0-9][a-z0-9_]{0,39}$`)

// lockKey returns the key of the advisory lock of a schema's writer.
func lockKey(schema, of string) int64 {
	sum := sha256.Sum256([]byte("assay " + of + " " + schema))
	return int64(binary.BigEndian.Uint64(sum[:]))
}

// termOf returns the number of a word.
func termOf(word string) int64 { return hashed("w" + word) }

// entityOf returns the number of an entity.
func entityOf(key string) int64 { return hashed("e" + key) }

func hashed(s string) int64 {
	sum := sha256.Sum256([]byte(s))
	return int64(binary.BigEndian.Uint64(sum[:]))
}

// encode maps a string of any bytes to a text that PostgreSQL can hold: each byte becomes the
// character of that number, except that zero becomes character 256. Equality, prefixes and
// substrings are preserved, and ASCII is unchanged.
func encode(s string) string {
	plain := true
	for i := range len(s) {
		plain = plain && 0 < s[i] && s[i] < 0x80
	}
	if plain {
		return s
	}
	var b strings.Builder
	for i := range len(s) {
		r := rune(s[i])
		if r == 0 {
			r = 256
		}
		b.WriteRune(r)
	}
	return b.String()
}

// decode is the inverse of encode.
func decode(s string) string {
	var b strings.Builder
	for _, r := range s {
		b.WriteByte(byte(r)) // 256 becomes 0
	}
	return b.String()
}

func encodeAll(list []string) []string {
	encoded := make([]string, len(list))
	for i, s := range list {
		encoded[i] = encode(s)
	}
	return encoded
}

// prepare creates the extension, the schema and the tables, unless they exist. It returns the
// schema of the extension.
func prepare(ctx context.Context, conn *pgx.Conn, schema, identity string) (extension string, err error) {
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		// The lock is that of all schemas, because they share the extension.
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, lockKey("", "extension")); err != nil {
			return err
		}
		if extension, err = prepareExtension(ctx, tx); err != nil {
			return err
		}
		name := pgx.Identifier{schema}.Sanitize()
		if _, err := tx.Exec(ctx, `SET LOCAL search_path = `+name); err != nil {
			return err
		}
		var exists bool
		if err := tx.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, name+`.state`).Scan(&exists); err != nil || exists {
			return err
		}
		for _, statement := range append([]string{`CREATE SCHEMA IF NOT EXISTS ` + name}, statements...) {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return err
			}
		}
		return begin(ctx, tx, identity)
	})
	return extension, err
}

// begin writes the state of an index without content.
func begin(ctx context.Context, tx pgx.Tx, identity string) error {
	_, err := tx.Exec(ctx, `INSERT INTO state (format, identity, epoch, sequence) VALUES ($1, $2, (random() * 9e18)::bigint, 0)`, format, encode(identity))
	return err
}

// prepareExtension creates the extension if it does not exist, and checks its version and the
// encoding of the database.
func prepareExtension(ctx context.Context, tx pgx.Tx) (schema string, err error) {
	var encoding string
	if err := tx.QueryRow(ctx, `SELECT current_setting('server_encoding')`).Scan(&encoding); err != nil {
		return "", err
	}
	if encoding != "UTF8" {
		return "", fmt.Errorf("the database has the encoding %s, want UTF8: %w", encoding, assay.ErrInvalid)
	}
	const query = `SELECT n.nspname, split_part(e.extversion, '.', 1)::int, split_part(e.extversion, '.', 2)::int
		FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'`
	var major, minor int
	err = tx.QueryRow(ctx, query).Scan(&schema, &major, &minor)
	if errors.Is(err, pgx.ErrNoRows) {
		if _, err := tx.Exec(ctx, `CREATE EXTENSION vector`); err != nil {
			return "", fmt.Errorf("create the extension vector: %w", err)
		}
		err = tx.QueryRow(ctx, query).Scan(&schema, &major, &minor)
	}
	if err == nil && major == 0 && minor < 8 {
		err = fmt.Errorf("the extension vector has the version %d.%d, want 0.8 or later: %w", major, minor, assay.ErrInvalid)
	}
	return schema, err
}

// models returns the numbers of the models that have a table of vectors.
func models(ctx context.Context, tx pgx.Tx) ([]int32, error) {
	rows, err := tx.Query(ctx, `SELECT no FROM model WHERE dimensions > 0 ORDER BY no`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int32])
}

// reset removes all content. Searches that began before see a state without a row once they get
// past the lock, and start again.
func reset(ctx context.Context, tx pgx.Tx, identity string) error {
	if _, err := tx.Exec(ctx, `TRUNCATE state, class, count, term, document, chunk, passage`); err != nil {
		return err
	}
	list, err := models(ctx, tx)
	if err != nil {
		return err
	}
	for _, no := range list {
		if _, err := tx.Exec(ctx, `DROP TABLE `+vectorTable(no)); err != nil {
			return err
		}
	}
	for _, statement := range []string{`TRUNCATE model`, `DROP INDEX IF EXISTS chunk_terms`, `DROP INDEX IF EXISTS passage_terms`} {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return begin(ctx, tx, identity)
}

// vectorTable returns the name of the table of a model's vectors.
func vectorTable(model int32) string { return fmt.Sprintf("vector_%d", model) }
