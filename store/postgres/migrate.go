package postgres

import (
	"context"
	"crypto/rand"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/assay-rag/assay"
)

// The migrations of a part are PART_1.sql, PART_2.sql and so on. Each brings the tables of a schema from
// the layout before to its own, in a transaction of the role that owns them. A file is never changed
// once it was released.
//
//go:embed migrations/*.sql
var migrationFiles embed.FS

const (
	systemPart part = "system"

	// program is the mark of this program's layout.
	program = "assay"

	systemSchema = "assay_system"
)

// migrations returns the migrations of a part.
func migrations(p part) ([]string, error) {
	var all []string
	for {
		text, err := migrationFiles.ReadFile(path.Join("migrations", fmt.Sprintf("%s_%d.sql", p, len(all)+1)))
		if err != nil {
			break // there are no more
		}
		all = append(all, string(text))
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("there are no migrations of %s", p)
	}
	return all, nil
}

// latest returns the layout of a part that this program writes.
func latest(p part) int {
	all, _ := migrations(p)
	return len(all)
}

// A layout is what a database says about its layout.
type layout struct {
	version  int
	identity string
	behind   bool // a migration is missing
}

// readLayout reads the layout. The session has the role appRole. The error is assay.ErrForeign if the
// schema is another program's, and assay.ErrNewer if a later version of this program wrote it.
func readLayout(s *session) (layout, error) {
	var l layout
	var name string
	err := s.row(`SELECT program, version, identity FROM `+systemSchema+`.layout`, nil, []any{&name, &l.version, &l.identity})
	code := codeOf(err)
	switch {
	case code == "42P01" || code == "42703" || code == "42501" || errors.Is(err, sql.ErrNoRows) || err == nil && name != program:
		return l, fmt.Errorf("the schema %s is not this program's: %w", systemSchema, assay.ErrForeign)
	case err != nil:
		return l, err
	}
	var content, runs, oldContent, oldRuns int
	err = s.row(`
SELECT COALESCE(max(content), 0), COALESCE(max(runs), 0), COALESCE(min(NULLIF(content, 0)), 0), COALESCE(min(runs), 0)
FROM `+systemSchema+`.schemas`, nil, []any{&content, &runs, &oldContent, &oldRuns})
	if err != nil {
		return l, err
	}
	if l.version > latest(systemPart) || content > latest(contentPart) || runs > latest(runsPart) {
		return l, fmt.Errorf("its layout is %d.%d.%d, this program knows up to %d.%d.%d: %w",
			l.version, content, runs, latest(systemPart), latest(contentPart), latest(runsPart), assay.ErrNewer)
	}
	l.behind = l.version < latest(systemPart) || oldRuns < latest(runsPart) || oldContent > 0 && oldContent < latest(contentPart)
	return l, nil
}

func codeOf(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// prepare creates what is missing in the database and brings the rest to the current layout. Other
// processes may be doing the same. The session has the role of the address, and afterwards appRole.
func prepare(ctx context.Context, s *session) (layout, error) {
	const most = 5
	var there bool
	var encoding string
	if err := s.row(`SELECT to_regnamespace(?) IS NOT NULL, current_setting('server_encoding')`, []any{systemSchema}, []any{&there, &encoding}); err != nil {
		return layout{}, err
	}
	if encoding != "UTF8" {
		return layout{}, invalid("its encoding is %s, want UTF8", encoding)
	}
	for i := 1; ; i++ {
		if there {
			err := s.script(ctx, `SET ROLE `+appRole)
			if code := codeOf(err); code == "22023" || code == "42704" {
				err = fmt.Errorf("the role %s is missing: %w", appRole, assay.ErrForeign)
			}
			if err != nil {
				return layout{}, connectError(err)
			}
			l, err := readLayout(s)
			if err != nil || !l.behind {
				return l, err
			}
		}
		err := migrate(ctx, s)
		// Roles are those of all databases of a server, each of which is prepared under a lock of its own.
		if err != nil && (i == most || codeOf(err) != "XX000") {
			return layout{}, fmt.Errorf("bring the database to the layout of this program: %w", connectError(err))
		}
		there = there || err == nil
	}
}

// createRoles creates the roles and gives the user of the address what it needs to become them.
const createRoles = `
DO $$ BEGIN CREATE ROLE ` + ownerRole + ` NOLOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
DO $$ BEGIN CREATE ROLE ` + appRole + ` NOLOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
`

// grants lets the user of the address become both roles and the owner create schemas, as far as they
// cannot yet. Since version 16, who creates a role is a member that may not become it.
const grants = `
DO $$ DECLARE "right" text := CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END; BEGIN
	IF NOT pg_has_role(session_user, '` + ownerRole + `', "right") THEN EXECUTE format('GRANT ` + ownerRole + ` TO %I', session_user); END IF;
	IF NOT pg_has_role(session_user, '` + appRole + `', "right") THEN EXECUTE format('GRANT ` + appRole + ` TO %I', session_user); END IF;
	IF NOT has_database_privilege('` + ownerRole + `', current_database(), 'CREATE') THEN
		EXECUTE format('GRANT CREATE ON DATABASE %I TO ` + ownerRole + `', current_database());
	END IF;
END $$;
`

// migrate brings the system and every tenant to the current layout, each in a transaction.
func migrate(ctx context.Context, s *session) error {
	err := inMigration(ctx, s, func() error {
		var owner, app bool
		err := s.row(`SELECT to_regrole(?) IS NOT NULL, to_regrole(?) IS NOT NULL`, []any{ownerRole, appRole}, []any{&owner, &app})
		if err == nil && (!owner || !app) {
			err = s.script(ctx, createRoles)
		}
		if err == nil {
			err = s.script(ctx, grants+`SET LOCAL ROLE `+ownerRole)
		}
		if err != nil {
			return err
		}
		return migrateSystem(ctx, s)
	})
	if err != nil {
		return err
	}
	for {
		var number int32
		var t tenancy
		more := true
		err := inMigration(ctx, s, func() error {
			if err := s.script(ctx, `SET LOCAL ROLE `+ownerRole); err != nil {
				return err
			}
			var content, runs int
			err := s.row(`SELECT number, identity, content, runs FROM `+systemSchema+`.schemas WHERE content > 0 AND content < ? OR runs < ? ORDER BY number LIMIT 1`,
				[]any{latest(contentPart), latest(runsPart)}, []any{&scanInt32{&number}, &t.identity, &content, &runs})
			if errors.Is(err, sql.ErrNoRows) {
				more = false
				return nil
			}
			if err != nil {
				return err
			}
			t.number = number
			if err := checkIdentity(t.identity); err != nil {
				return err
			}
			return migrateTenant(ctx, s, t, content, runs)
		})
		if err != nil || !more {
			return err
		}
	}
}

// scanInt32 scans a number of a tenant.
type scanInt32 struct{ to *int32 }

// Scan implements sql.Scanner.
func (n *scanInt32) Scan(v any) error {
	i, ok := v.(int64)
	*n.to = int32(i)
	if !ok || int64(*n.to) != i {
		return damaged("the number of a tenant is %v", v)
	}
	return nil
}

// inMigration runs fn in a transaction with the role of the address, while no other process migrates.
func inMigration(ctx context.Context, s *session, fn func() error) error {
	err := s.script(ctx, `RESET ROLE; BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0;
SELECT pg_advisory_xact_lock(`+itoa(lockBase)+`, `+itoa(lockMigrations)+`)`)
	if err == nil {
		err = fn()
	}
	end := `COMMIT`
	if err != nil {
		end = `ROLLBACK`
	}
	if s.broken != nil {
		return err
	}
	return errors.Join(err, s.script(context.WithoutCancel(ctx), end))
}

// migrateSystem brings the schema of the system to the current layout. The role is ownerRole.
func migrateSystem(ctx context.Context, s *session) error {
	var there bool
	if err := s.row(`SELECT to_regnamespace(?) IS NOT NULL`, []any{systemSchema}, []any{&there}); err != nil {
		return err
	}
	t, version, runs := tenancy{identity: rand.Text()}, 0, 0
	if there {
		err := s.row(`SELECT l.version, s.runs, l.identity FROM `+systemSchema+`.layout l, `+systemSchema+`.schemas s WHERE s.number = 0`,
			nil, []any{&version, &runs, &t.identity})
		if err != nil {
			return err
		}
	} else if err := s.script(ctx, `CREATE SCHEMA `+systemSchema); err != nil {
		return err
	}
	if err := apply(ctx, s, systemSchema, t.identity, systemPart, version); err != nil {
		return err
	}
	if err := apply(ctx, s, systemSchema, t.identity, runsPart, runs); err != nil {
		return err
	}
	if !there {
		err := s.script(ctx, `
INSERT INTO layout (id, program, version, identity) VALUES (1, '`+program+`', 0, `+quote(t.identity)+`);
INSERT INTO schemas (number, identity, content, runs) VALUES (0, `+quote(t.identity)+`, 0, 0);
INSERT INTO store (id, tenant, sequence) VALUES (1, `+quote(t.identity)+`, 0);
GRANT SELECT ON layout, schemas TO `+appRole)
		if err != nil {
			return err
		}
	}
	err := s.script(ctx, fmt.Sprintf(`UPDATE layout SET version = %d; UPDATE schemas SET runs = %d WHERE number = 0`, latest(systemPart), latest(runsPart)))
	if err != nil {
		return err
	}
	return secure(ctx, s, systemSchema, t.identity)
}

// createSchemas creates the schemas of a tenant. The role is ownerRole. It returns the tenant with its
// number.
func createSchemas(ctx context.Context, s *session, identity string) (tenancy, error) {
	t := tenancy{identity: identity}
	err := s.row(`INSERT INTO `+systemSchema+`.schemas (identity, content, runs) VALUES (?, 0, 0) RETURNING number`,
		[]any{identity}, []any{&scanInt32{&t.number}})
	if err != nil {
		return t, err
	}
	for _, p := range []part{contentPart, runsPart} {
		if err := s.script(ctx, `CREATE SCHEMA `+t.schema(p)); err != nil {
			return t, err
		}
	}
	return t, migrateTenant(ctx, s, t, 0, 0)
}

// migrateTenant brings the schemas of a tenant to the current layout. The role is ownerRole.
func migrateTenant(ctx context.Context, s *session, t tenancy, content, runs int) error {
	for p, version := range map[part]int{contentPart: content, runsPart: runs} {
		if err := apply(ctx, s, t.schema(p), t.identity, p, version); err != nil {
			return err
		}
		if version == 0 {
			if err := s.script(ctx, `INSERT INTO store (id, tenant, sequence) VALUES (1, `+quote(t.identity)+`, 0)`); err != nil {
				return err
			}
		}
		if err := secure(ctx, s, t.schema(p), t.identity); err != nil {
			return err
		}
	}
	_, err := s.do(call{query: `UPDATE ` + systemSchema + `.schemas SET content = ?, runs = ? WHERE identity = ?`,
		args: []any{latest(contentPart), latest(runsPart), t.identity}})
	return err
}

// apply runs the migrations of a part after a version, in a schema.
func apply(ctx context.Context, s *session, schema, identity string, p part, version int) error {
	all, err := migrations(p)
	if err != nil {
		return err
	}
	if err := s.script(ctx, `SET LOCAL search_path = `+schema+`, pg_temp; SET LOCAL assay.tenant = `+quote(identity)); err != nil {
		return err
	}
	for i := version; i < len(all); i++ {
		if err := s.script(ctx, all[i]); err != nil {
			return fmt.Errorf("migration %d of %s: %w", i+1, p, err)
		}
	}
	return nil
}

// secureScript gives appRole its rights on the tables of a schema, and adds the policy by which their
// rows exist only in transactions of their tenant. The leaves of the audit log cannot be changed. The
// tables of the layout have no rows of tenants.
const secureScript = `
DO $$ DECLARE name text; BEGIN
	FOR name IN SELECT relname FROM pg_class WHERE relnamespace = '{schema}'::regnamespace AND relkind = 'r' AND relname NOT IN ('layout', 'schemas') LOOP
		EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
		EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
		EXECUTE format('DROP POLICY IF EXISTS tenant ON %I', name);
		EXECUTE format('CREATE POLICY tenant ON %I USING (current_setting(''assay.tenant'', true) = ''{identity}'') WITH CHECK (current_setting(''assay.tenant'', true) = ''{identity}'')', name);
		EXECUTE format('GRANT SELECT, INSERT ON %I TO {role}', name);
		IF name NOT IN ('log', 'tree') THEN
			EXECUTE format('GRANT UPDATE, DELETE ON %I TO {role}', name);
		END IF;
	END LOOP;
END $$;
GRANT USAGE ON SCHEMA {schema} TO {role}`

// secure makes the tables of a schema, which is the first of the search path, those of a tenant.
func secure(ctx context.Context, s *session, schema, identity string) error {
	return s.script(ctx, strings.NewReplacer("{schema}", schema, "{identity}", identity, "{role}", appRole).Replace(secureScript))
}
