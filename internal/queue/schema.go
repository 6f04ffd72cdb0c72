package queue

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/assay-rag/assay"
)

// schema is the schema of all tables of the queue.
const schema = "assay_queue"

// version is the version of the tables that this package adds to River's.
const version = 1

// The classes of advisory locks.
const (
	lockMigration = 0x61737101 // for changes of the tables
	lockWorker    = 0x61737102 // held by each worker while it lives
	lockDocument  = 0x61737103 // held while a version of a document is stored
)

const tables = `
CREATE SEQUENCE assay_queue.version;

-- A row for each document of which a version waits or was not stored. Versions up to done are stored, or
-- older than one that is.
CREATE TABLE assay_queue.document (
	tenant     text   NOT NULL, -- its identity
	collection text   NOT NULL,
	uri        text   NOT NULL,
	latest     bigint NOT NULL,
	done       bigint NOT NULL,
	hash       bytea  NOT NULL, -- of the latest version
	job        bigint,          -- of the latest version
	PRIMARY KEY (tenant, collection, uri)
);

-- The content of a document until it is stored, or its job is dropped.
CREATE TABLE assay_queue.upload (
	job        bigint PRIMARY KEY REFERENCES assay_queue.river_job ON DELETE CASCADE,
	tenant     text   NOT NULL,
	collection text   NOT NULL,
	uri        text   NOT NULL,
	meta       jsonb  NOT NULL,
	data       bytea  NOT NULL
);
CREATE INDEX ON assay_queue.upload (tenant, collection, uri);
ALTER TABLE assay_queue.upload ALTER COLUMN data SET STORAGE EXTERNAL;

CREATE TABLE assay_queue.assay_version (version integer NOT NULL);
INSERT INTO assay_queue.assay_version VALUES (1);
`

// migrate creates or migrates the tables. Processes that start at once wait for each other.
func migrate(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1, 0)`, lockMigration); err != nil {
		return err
	}
	defer conn.Exec(context.WithoutCancel(ctx), `SELECT pg_advisory_unlock($1, 0)`, lockMigration) //nolint:errcheck // it ends with the connection
	if _, err := conn.Exec(ctx, `CREATE SCHEMA IF NOT EXISTS assay_queue`); err != nil {
		return err
	}
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Schema: schema, Logger: quiet(log)})
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("migrate the tables of the queue: %w", err)
	}
	var there bool
	if err := conn.QueryRow(ctx, `SELECT to_regclass('assay_queue.assay_version') IS NOT NULL`).Scan(&there); err != nil {
		return err
	}
	if !there {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, tables)
			return err
		})
	}
	var have int
	if err := conn.QueryRow(ctx, `SELECT version FROM assay_queue.assay_version`).Scan(&have); err != nil {
		return err
	}
	if have > version {
		return fmt.Errorf("its tables have version %d, and this program knows %d: %w", have, version, assay.ErrNewer)
	}
	return nil
}

// quiet returns a logger that drops messages below warnings, of which River writes many, and those about
// work that a shutdown has ended.
func quiet(log *slog.Logger) *slog.Logger {
	return slog.New(atLeast{log.Handler(), slog.LevelWarn})
}

// An atLeast is a handler with a lowest level.
type atLeast struct {
	slog.Handler
	level slog.Level
}

// Enabled implements slog.Handler.
func (a atLeast) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= a.level && a.Handler.Enabled(ctx, l)
}

// Handle implements slog.Handler.
func (a atLeast) Handle(ctx context.Context, r slog.Record) error {
	ended := false
	r.Attrs(func(attr slog.Attr) bool {
		ended = ended || strings.Contains(attr.Value.String(), context.Canceled.Error())
		return !ended
	})
	if ended {
		return nil
	}
	return a.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (a atLeast) WithAttrs(attrs []slog.Attr) slog.Handler {
	return atLeast{a.Handler.WithAttrs(attrs), a.level}
}

// WithGroup implements slog.Handler.
func (a atLeast) WithGroup(name string) slog.Handler {
	return atLeast{a.Handler.WithGroup(name), a.level}
}
