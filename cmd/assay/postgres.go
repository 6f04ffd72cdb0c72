package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/cmd/assay/internal/config"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/postgres"
)

// openPostgres opens the store in a database.
func (l location) openPostgres(ctx context.Context) (store.Store, error) {
	s, err := postgres.Open(ctx, l.remote.Address(), postgres.WithFolder(l.dir))
	if err != nil {
		return nil, err
	}
	return s, nil
}

const describeServer = `
SELECT current_setting('server_version'), pg_is_in_recovery(),
	(SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'),
	(SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state IN ('sync', 'quorum')),
	COALESCE((SELECT installed_version FROM pg_available_extensions WHERE name = 'vector'), ''),
	EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector')`

// checkServer reports the version of the database's server, its replicas and whether it has pgvector.
func (l location) checkServer(ctx context.Context) config.Check {
	check := config.Check{Name: "store"}
	fail := func(err error) config.Check {
		check.Err = fmt.Errorf("%w: %w", err, assay.ErrUnavailable)
		check.Detail = fmt.Sprintf("%s: %v", l, err)
		check.Hint = "check that the server runs, and the address, user and password"
		return check
	}
	conn, err := pgx.Connect(ctx, l.remote.Address())
	if err != nil {
		return fail(err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it was only read
	var version, vector string
	var replica, offered bool
	var streaming, synchronous int
	if err := conn.QueryRow(ctx, describeServer).Scan(&version, &replica, &streaming, &synchronous, &vector, &offered); err != nil {
		return fail(err)
	}
	role := fmt.Sprintf("primary with %s, %d synchronous", count(streaming, "replica", "replicas"), synchronous)
	if replica {
		role = "replica, read-only"
	}
	switch {
	case vector != "":
		vector = "pgvector " + vector
	case offered:
		vector = "pgvector is not created yet"
	default:
		vector = "no pgvector"
	}
	check.OK, check.Detail = true, fmt.Sprintf("%s: PostgreSQL %s, %s, %s, index %s", l, version, role, vector, l.remote.Index)
	return check
}
