package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/internal/relational"
)

// movingSystem takes the place of a tenant's name, of which it cannot be one.
const movingSystem = ".system"

// A mover implements relational.Mover.
type mover = relational.Mover

// Mover returns the means to move tenants from and to the store; see package move.
func (s *Store) Mover() mover { return schemaMover{s} }

type schemaMover struct{ s *Store }

var errGiven = errors.New("nothing is changed")

// Give implements relational.Mover.
func (m schemaMover) Give(ctx context.Context, name string, fn func(relational.Given) error) error {
	t, err := m.s.open(ctx, name, true)
	if err != nil {
		return err
	}
	err = m.give(ctx, t, fn)
	return errors.Join(wrap(err, "move tenant %s", name), t.Close())
}

func (m schemaMover) give(ctx context.Context, t *Tenant, fn func(relational.Given) error) error {
	info, err := store.LookTenant(ctx, m.s.systemWith(m.s.system).Registry(), t.Name())
	if err != nil {
		return err
	}
	give := func(runs, content relational.Reader) error {
		settings, err := readSettings(ctx, runs)
		if err != nil {
			return err
		}
		return fn(relational.Given{
			Info: info, Tenant: t, Settings: settings,
			Content: relational.GivenTables{Reader: content, Newest: numbers{t.content}.Newest},
			Runs:    relational.GivenTables{Reader: runs, Newest: numbers{t.runs}.Newest},
		})
	}
	if m.s.readOnly {
		return t.runs.View(ctx, func(runs relational.Reader) error {
			return t.content.View(ctx, func(content relational.Reader) error { return give(runs, content) })
		})
	}
	if err := errors.Join(t.checkUnlocked(ctx), t.CheckIdle(ctx)); err != nil {
		return err
	}
	writer, release, err := t.lockWriter(ctx)
	if err != nil {
		return err
	}
	_, err = t.Audit().Size(ctx) // brings the acts on content to the log
	if err == nil {
		err = frozen(ctx, &updater{d: t.runs, turn: newTurn()}, func(runs relational.Reader) error {
			if err := t.CheckIdle(ctx); err != nil {
				return err
			}
			return frozen(ctx, writer, func(content relational.Reader) error { return give(runs, content) })
		})
	}
	return errors.Join(err, release())
}

// frozen calls fn in a transaction that changes nothing and that excludes all others, however long it
// takes.
func frozen(ctx context.Context, u *updater, fn func(relational.Reader) error) error {
	err := u.Update(ctx, func(t relational.Tx) error {
		if err := t.(*tx).s.script(ctx, `SET LOCAL idle_in_transaction_session_timeout = 0`); err != nil {
			return err
		}
		if err := fn(t); err != nil {
			return err
		}
		return errGiven
	})
	if errors.Is(err, errGiven) {
		err = nil
	}
	return err
}

// readSettings returns a tenant's settings by their names.
func readSettings(ctx context.Context, r relational.Reader) (map[string][]byte, error) {
	all := map[string][]byte{}
	err := r.Each(ctx, `SELECT name, value FROM settings`, nil, func(scan func(...any) error) error {
		var name string
		var value []byte
		err := scan(&name, &value)
		all[name] = value
		return err
	})
	return all, err
}

// GiveSystem implements relational.Mover.
func (m schemaMover) GiveSystem(ctx context.Context, fn func(relational.GivenTables) error) error {
	give := func(r relational.Reader) error {
		return fn(relational.GivenTables{Reader: r, Newest: numbers{m.s.system}.Newest})
	}
	if m.s.readOnly {
		return m.s.system.View(ctx, give)
	}
	return frozen(ctx, &updater{d: m.s.system, turn: newTurn()}, give)
}

// Stage implements relational.Mover.
func (m schemaMover) Stage(ctx context.Context, info store.TenantInfo) (*relational.Staged, error) {
	if err := relational.CheckTenantName(info.Name); err != nil {
		return nil, err
	}
	x := &stagedSchemas{s: m.s, info: info}
	err := x.create(ctx, info.Name, info.Identity, func() error {
		_, err := store.LookTenant(ctx, m.s.systemWith(m.s.system).Registry(), info.Name)
		if err == nil {
			return invalid("it has a tenant %s already", info.Name)
		}
		if errors.Is(err, assay.ErrNotFound) {
			err = nil
		}
		return err
	})
	if err != nil {
		return nil, wrap(err, "move tenant %s to %s", info.Name, m.s.name)
	}
	return &relational.Staged{
		Info: info, Content: x.tables(contentPart), Runs: x.tables(runsPart),
		OpenTenant: x.openTenant, Discard: x.discard, Place: x,
	}, nil
}

// StageSystem implements relational.Mover. The tables are in schemas of their own.
func (m schemaMover) StageSystem(ctx context.Context) (*relational.Staged, error) {
	x := &stagedSchemas{s: m.s}
	if err := x.create(ctx, movingSystem, rand.Text(), func() error { return m.s.checkNew(ctx) }); err != nil {
		return nil, wrap(err, "move to %s", m.s.name)
	}
	return &relational.Staged{Runs: x.tables(runsPart), OpenSystem: x.openSystem, Discard: x.discard, Place: x}, nil
}

// checkNew returns assay.ErrInvalid unless nothing was ever changed in the system.
func (s *Store) checkNew(ctx context.Context) error {
	var entries int64
	err := s.system.Row(ctx, `SELECT sequence FROM store`, nil, &entries)
	if err == nil && entries > 0 {
		err = invalid("it is in use already: the whole of a store can only be moved to a new one")
	}
	return err
}

// stagedSchemas are the schemas of a tenant, or of a system, that is moved here.
type stagedSchemas struct {
	s *Store
	tenancy
	info store.TenantInfo // zero: of a system
	lock *heldLock

	opened  interface{ Close() error } // nil: not yet
	adopted bool
}

func (x *stagedSchemas) tables(p part) relational.StagedTables {
	d := x.s.database(x.tenancy, p)
	return relational.StagedTables{Database: d, Numbers: numbers{d}}
}

// create creates the schemas, if check allows it.
func (x *stagedSchemas) create(ctx context.Context, name, identity string, check func() error) (err error) {
	if err := x.s.checkReadOnly(); err != nil {
		return err
	}
	all, err := x.s.waitForTenants(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, all.Close()) }()
	if err := check(); err != nil {
		return err
	}
	if err := x.s.removeMoving(ctx); err != nil {
		return err
	}
	if x.lock, err = x.s.take(ctx, x.s.system.tenancy, movingLock(identity), "the move of it"); err != nil {
		return err
	}
	err = x.s.asOwner(ctx, func(c *session) error {
		var err error
		if x.tenancy, err = createSchemas(ctx, c, identity); err != nil {
			if codeOf(err) == "23505" {
				err = invalid("another tenant of it has the same data")
			}
			return err
		}
		_, err = c.do(call{query: `UPDATE ` + systemSchema + `.schemas SET moving = ? WHERE identity = ?`, args: []any{name, identity}})
		return err
	})
	if err != nil {
		err = errors.Join(err, x.lock.Close())
	}
	return err
}

// movingLock returns the key of the lock of a process that moves a tenant.
func movingLock(identity string) int32 { return namedLock("move " + identity) }

// asOwner calls fn in a transaction of the role that owns the tables.
func (s *Store) asOwner(ctx context.Context, fn func(*session) error) (err error) {
	c, err := s.dial(ctx, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := c.script(ctx, `BEGIN; SET LOCAL ROLE `+ownerRole); err != nil {
		return roleError(err)
	}
	if err := fn(c); err != nil {
		return err // the transaction ends with its connection
	}
	return c.script(ctx, `COMMIT`)
}

// removeMoving removes what interrupted moves left. The caller holds the lock of tenants.
func (s *Store) removeMoving(ctx context.Context) error {
	var left []string
	err := s.system.View(ctx, func(r relational.Reader) error {
		return r.Each(ctx, `SELECT identity FROM schemas WHERE moving <> ''`, nil, func(scan func(...any) error) error {
			var identity string
			err := scan(&identity)
			left = append(left, identity)
			return err
		})
	})
	if err != nil {
		return err
	}
	for _, identity := range left {
		lock, err := s.take(ctx, s.system.tenancy, movingLock(identity), "the move")
		if errors.Is(err, assay.ErrLocked) {
			continue
		}
		if err != nil {
			return err
		}
		err = s.asOwner(ctx, func(c *session) error { return dropSchemas(ctx, c, identity) })
		if err = errors.Join(err, lock.Close()); err != nil {
			return err
		}
	}
	return nil
}

func (x *stagedSchemas) openTenant(ctx context.Context) (store.Tenant, error) {
	t, err := x.s.openTenant(ctx, x.info.Name, x.identity)
	if err != nil {
		return nil, err
	}
	x.opened = t
	return t, nil
}

func (x *stagedSchemas) openSystem(context.Context) (store.System, error) {
	s := relational.NewSystem(relational.SystemConfig{Database: x.s.database(x.tenancy, runsPart), Options: x.s.opts})
	x.opened = s
	return s, nil
}

// close closes what was opened.
func (x *stagedSchemas) close() error {
	if x.opened == nil {
		return nil
	}
	err := x.opened.Close()
	x.opened = nil
	return err
}

// discard implements relational.Staged.Discard.
func (x *stagedSchemas) discard() error {
	err := x.close()
	if x.lock == nil {
		return err
	}
	if !x.adopted {
		ctx := context.Background()
		err = errors.Join(err, x.s.asOwner(ctx, func(c *session) error { return dropSchemas(ctx, c, x.identity) }))
	}
	err = errors.Join(err, x.lock.Close())
	x.lock = nil
	return err
}

// Adopt implements relational.Mover.
func (m schemaMover) Adopt(ctx context.Context, tenants []*relational.Staged, system *relational.Staged, b relational.Belongings) error {
	if system != nil {
		return wrap(m.adoptAll(ctx, tenants, system), "move to %s", m.s.name)
	}
	if len(tenants) == 0 {
		return nil
	}
	err := m.s.changeTenants(ctx, tenants[0].Info.Name, func(store.Registry) error {
		infos, err := infosOf(tenants)
		if err != nil {
			return err
		}
		settle := definer{m.s.system, func(ctx context.Context, c *session) error { return settle(c, infos) }}
		if err := m.s.systemWith(settle).Take(ctx, infos, b); err != nil {
			return err
		}
		adopted(tenants)
		return nil
	})
	return wrap(err, "move to %s", m.s.name)
}

// infosOf closes the tenants and returns their entries.
func infosOf(tenants []*relational.Staged) (infos []store.TenantInfo, err error) {
	for _, t := range tenants {
		err = errors.Join(err, t.Place.(*stagedSchemas).close())
		infos = append(infos, t.Info)
	}
	return infos, err
}

// settle makes the schemas of tenants those of tenants that are here.
func settle(c *session, infos []store.TenantInfo) error {
	for _, info := range infos {
		r, err := c.do(call{query: `UPDATE ` + systemSchema + `.schemas SET moving = '' WHERE identity = ? AND moving = ?`, args: []any{info.Identity, info.Name}})
		if err == nil && r.affected != 1 {
			err = damaged("the schemas of tenant %s were removed meanwhile", info.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func adopted(staged []*relational.Staged) {
	for _, t := range staged {
		t.Place.(*stagedSchemas).adopted = true
	}
}

// adoptAll makes the staged tables of a system the store's, whose registry has entries of the tenants.
func (m schemaMover) adoptAll(ctx context.Context, tenants []*relational.Staged, system *relational.Staged) (err error) {
	lock, err := m.s.waitForTenants(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := m.s.checkNew(ctx); err != nil {
		return err
	}
	infos, err := infosOf(append([]*relational.Staged{system}, tenants...))
	if err != nil {
		return err
	}
	x := system.Place.(*stagedSchemas)
	err = m.s.asOwner(ctx, func(c *session) error {
		from := x.schema(runsPart)
		for _, t := range relational.RunsTables() {
			if err := c.script(ctx, fmt.Sprintf(`DROP TABLE %[1]s.%[2]s CASCADE; ALTER TABLE %[3]s.%[2]s SET SCHEMA %[1]s`, systemSchema, t.Name, from)); err != nil {
				return err
			}
		}
		if err := c.script(ctx, strings.NewReplacer("{from}", from, "{to}", systemSchema).Replace(moveFunctions)); err != nil {
			return err
		}
		if err := c.script(ctx, `SET LOCAL search_path = `+systemSchema+`, pg_temp`); err != nil {
			return err
		}
		if err := secure(ctx, c, systemSchema, m.s.identity); err != nil {
			return err
		}
		if err := settle(c, infos[1:]); err != nil {
			return err
		}
		return dropSchemas(ctx, c, x.identity)
	})
	if err == nil {
		adopted(append(tenants, system))
	}
	return err
}

// moveFunctions moves the functions of triggers from one schema to another after their tables.
const moveFunctions = `
DO $$ DECLARE name text; BEGIN
	FOR name IN SELECT proname FROM pg_proc WHERE pronamespace = '{from}'::regnamespace LOOP
		EXECUTE format('DROP FUNCTION IF EXISTS {to}.%I', name);
		EXECUTE format('ALTER FUNCTION {from}.%I SET SCHEMA {to}', name);
	END LOOP;
END $$`

// numbers implements relational.Numbering. Columns named number are identity columns, whose sequences belong
// to the role that owns the tables; those of waiting_acts are given by a trigger.
type numbers struct{ d *database }

const waitingActs = "waiting_acts"

// define runs statements with the role that owns the tables, in the transaction.
func (numbers) define(ctx context.Context, t relational.Tx, script string) error {
	return t.(*tx).s.script(ctx, `SET LOCAL ROLE `+ownerRole+`; `+script+`; SET LOCAL ROLE `+appRole)
}

// Begin implements relational.Numbering.
func (n numbers) Begin(ctx context.Context, t relational.Tx, table relational.Table) error {
	if table.Name != waitingActs {
		return nil
	}
	return n.define(ctx, t, `ALTER TABLE waiting_acts DISABLE TRIGGER number_act`)
}

// End implements relational.Numbering.
func (n numbers) End(ctx context.Context, t relational.Tx, table relational.Table, newest int64) error {
	if table.Name == waitingActs {
		if _, err := t.Exec(ctx, `UPDATE store SET waiting_acts = ?`, newest); err != nil {
			return err
		}
		return n.define(ctx, t, `ALTER TABLE waiting_acts ENABLE TRIGGER number_act`)
	}
	return n.define(ctx, t, fmt.Sprintf(`ALTER TABLE %s ALTER COLUMN number RESTART WITH %d`, table.Name, newest+1))
}

// Newest implements relational.Numbering.
func (n numbers) Newest(ctx context.Context, r relational.Reader, table string) (newest int64, err error) {
	if table == waitingActs {
		err = r.Row(ctx, `SELECT waiting_acts FROM store`, nil, &newest)
		return newest, err
	}
	err = n.d.s.asOwner(ctx, func(c *session) error {
		var called bool
		err := c.row(fmt.Sprintf(`SELECT last_value, is_called FROM %s.%s_number_seq`, n.d.schema(n.d.part), table), nil, []any{&newest, &called})
		if !called {
			newest--
		}
		return err
	})
	return newest, err
}
