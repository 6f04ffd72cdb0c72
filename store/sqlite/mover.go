package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/internal/relational"
)

const (
	// moving is the prefix of the names of the folders of tenants that are being moved here. Beside each
	// is a file of its name with lockSuffix, which the moving process holds.
	moving = ".moving-"

	// movingSystem takes the place of a tenant's name, of which it cannot be one.
	movingSystem = ".system"
)

// A mover implements relational.Mover.
type mover = relational.Mover

// Mover returns the means to move tenants from and to the store; see package move.
func (s *Store) Mover() mover { return folderMover{s} }

type folderMover struct{ s *Store }

var errGiven = errors.New("nothing is changed")

// Give implements relational.Mover.
func (m folderMover) Give(ctx context.Context, name string, fn func(relational.Given) error) error {
	t, err := m.s.open(ctx, name, true)
	if err != nil {
		return err
	}
	err = m.give(ctx, t, fn)
	return errors.Join(wrap(err, "move tenant %s", name), t.Close())
}

func (m folderMover) give(ctx context.Context, t *Tenant, fn func(relational.Given) error) error {
	info, err := m.s.look(ctx, t.name)
	if err != nil {
		return err
	}
	give := func(runs, content relational.Reader) error {
		settings, err := t.settings()
		if err != nil {
			return err
		}
		return fn(relational.Given{
			Info: info, Tenant: t, Settings: settings,
			Content: relational.GivenTables{Reader: content, Newest: numbers{}.Newest},
			Runs:    relational.GivenTables{Reader: runs, Newest: numbers{}.Newest},
		})
	}
	if t.readOnly {
		return t.runs.View(ctx, func(runs relational.Reader) error {
			return t.content.View(ctx, func(content relational.Reader) error { return give(runs, content) })
		})
	}
	if err := t.checkIdle(ctx); err != nil {
		return err
	}
	lock, err := lockWriter(t.dir)
	if err != nil {
		return err
	}
	_, err = t.Audit().Size(ctx) // brings the acts on content to the log
	if err == nil {
		err = frozen(ctx, t.runs, func(runs relational.Reader) error {
			if err := t.CheckIdle(ctx); err != nil {
				return err
			}
			return frozen(ctx, t.content, func(content relational.Reader) error { return give(runs, content) })
		})
	}
	return errors.Join(err, lock.release())
}

// frozen calls fn in a transaction that changes nothing and that excludes all others.
func frozen(ctx context.Context, d *database, fn func(relational.Reader) error) error {
	u, err := openUpdater(ctx, d)
	if err != nil {
		return err
	}
	err = u.Update(ctx, func(t relational.Tx) error {
		if err := fn(t); err != nil {
			return err
		}
		return errGiven
	})
	if errors.Is(err, errGiven) {
		err = nil
	}
	return errors.Join(err, u.Close())
}

// settings returns the tenant's settings by their names.
func (t *Tenant) settings() (map[string][]byte, error) {
	entries, err := os.ReadDir(t.dir)
	if err != nil {
		return nil, err
	}
	all := map[string][]byte{}
	for _, e := range entries {
		if !isSetting(e.Name()) || !e.Type().IsRegular() {
			continue
		}
		name := strings.TrimSuffix(e.Name(), ".json")
		if all[name], err = os.ReadFile(t.settingPath(name)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// GiveSystem implements relational.Mover.
func (m folderMover) GiveSystem(ctx context.Context, fn func(relational.GivenTables) error) error {
	give := func(r relational.Reader) error {
		return fn(relational.GivenTables{Reader: r, Newest: numbers{}.Newest})
	}
	path := filepath.Join(m.s.dir, systemName)
	if !m.s.hasSystem() {
		return fmt.Errorf("there is no %s: %w", systemName, assay.ErrNotFound)
	}
	var err error
	if !writable(m.s.dir) || !writable(path) {
		mode := modeImmutable
		if hasLog(path) {
			mode = modeRead
		}
		err = withDatabase(ctx, path, mode, func(d *database) error { return d.View(ctx, give) })
	} else {
		err = withDatabase(ctx, path, modeWrite, func(d *database) error { return frozen(ctx, d, give) })
	}
	return wrap(err, "move %s", systemName)
}

func withDatabase(ctx context.Context, path string, m mode, fn func(*database) error) error {
	d, err := openDatabase(ctx, path, runsSchema, m)
	if err != nil {
		return err
	}
	return errors.Join(fn(d), d.Close())
}

// Stage implements relational.Mover.
func (m folderMover) Stage(ctx context.Context, info store.TenantInfo) (*relational.Staged, error) {
	if err := relational.CheckTenantName(info.Name); err != nil {
		return nil, err
	}
	x := &stagedFolder{s: m.s, info: info}
	err := x.create(ctx, info.Name, func() error {
		_, err := m.s.look(ctx, info.Name)
		if err == nil {
			return invalid("it has a tenant %s already", info.Name)
		}
		if !errors.Is(err, assay.ErrNotFound) {
			return err
		}
		if _, err := os.Stat(m.s.folder(info.Name)); err == nil {
			return invalid("its folder %s exists already", m.s.folder(info.Name))
		}
		return nil
	}, contentName, runsName)
	if err != nil {
		return nil, wrap(err, "move tenant %s to %s", info.Name, m.s.dir)
	}
	return &relational.Staged{
		Info:       info,
		Content:    relational.StagedTables{Database: x.databases[0], Numbers: numbers{}},
		Runs:       relational.StagedTables{Database: x.databases[1], Numbers: numbers{}},
		OpenTenant: x.openTenant,
		Discard:    x.discard,
		Place:      x,
	}, nil
}

// StageSystem implements relational.Mover.
func (m folderMover) StageSystem(ctx context.Context) (*relational.Staged, error) {
	x := &stagedFolder{s: m.s}
	if err := x.create(ctx, movingSystem, func() error { return m.s.checkNew(ctx) }, systemName); err != nil {
		return nil, wrap(err, "move to %s", m.s.dir)
	}
	return &relational.Staged{
		Runs:       relational.StagedTables{Database: x.databases[0], Numbers: numbers{}},
		OpenSystem: x.openSystem,
		Discard:    x.discard,
		Place:      x,
	}, nil
}

// checkNew returns assay.ErrInvalid unless the store has neither tenants nor a system.
func (s *Store) checkNew(ctx context.Context) error {
	names, err := s.Tenants(ctx)
	if err == nil && (len(names) > 0 || s.hasSystem()) {
		err = invalid("it is in use already: the whole of a store can only be moved to a new one")
	}
	return err
}

// numbers implements relational.Numbering. SQLite keeps the newest number of a table with AUTOINCREMENT
// in sqlite_sequence, and takes the next free one in other tables.
type numbers struct{}

// Begin implements relational.Numbering.
func (numbers) Begin(context.Context, relational.Tx, relational.Table) error { return nil }

// End implements relational.Numbering.
func (numbers) End(ctx context.Context, t relational.Tx, table relational.Table, newest int64) error {
	if !table.Counted {
		return nil
	}
	_, err := t.Exec(ctx, `DELETE FROM sqlite_sequence WHERE name = ?`, table.Name)
	if err == nil && newest > 0 {
		_, err = t.Exec(ctx, `INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)`, table.Name, newest)
	}
	return err
}

// Newest implements relational.Numbering.
func (numbers) Newest(ctx context.Context, r relational.Reader, table string) (newest int64, err error) {
	err = r.Row(ctx, `SELECT `+dialect{}.Newest(table), nil, &newest)
	return newest, err
}

// A stagedFolder is the folder of a tenant or a system that is moved here.
type stagedFolder struct {
	s         *Store
	info      store.TenantInfo
	dir       string
	lock      *flock.Flock
	databases []*database
	opened    interface{ Close() error } // nil: not yet
	adopted   bool
}

// create creates the folder with empty databases, if check allows it.
func (x *stagedFolder) create(ctx context.Context, name string, check func() error, databases ...string) error {
	if !writable(x.s.dir) || !writable(filepath.Join(x.s.dir, tenantsName)) {
		return assay.ErrReadOnly
	}
	all, err := x.s.lockTenants(ctx)
	if err != nil {
		return err
	}
	err = check()
	if err == nil {
		err = x.s.removeMoving()
	}
	if err == nil {
		x.dir = filepath.Join(x.s.dir, tenantsName, moving+name)
		x.lock = flock.New(x.dir+lockSuffix, flock.SetPermissions(0o600))
		var free bool
		if free, err = x.lock.TryLock(); err == nil && !free {
			err = fmt.Errorf("another process is moving it: %w", assay.ErrLocked)
		}
	}
	if err = errors.Join(err, all.Unlock()); err != nil {
		if x.lock != nil {
			err = errors.Join(err, x.lock.Close())
		}
		return err
	}
	if err = os.Mkdir(x.dir, 0o700); err == nil {
		err = x.createDatabases(ctx, databases)
	}
	if err != nil {
		err = errors.Join(err, x.discard())
	}
	return err
}

func (x *stagedFolder) createDatabases(ctx context.Context, names []string) error {
	for _, name := range names {
		s := runsSchema
		if name == contentName {
			s = contentSchema
		}
		path := filepath.Join(x.dir, name)
		if err := createDatabase(ctx, path, s, x.info.Identity); err != nil {
			return err
		}
		d, err := openDatabase(ctx, path, s, modeWrite)
		if err != nil {
			return err
		}
		x.databases = append(x.databases, d)
	}
	if x.info.Name == "" {
		return nil
	}
	return os.Mkdir(filepath.Join(x.dir, leasesName), 0o700)
}

// close closes what is open.
func (x *stagedFolder) close() error {
	var errs []error
	for _, d := range x.databases {
		errs = append(errs, d.Close())
	}
	if x.opened != nil {
		errs = append(errs, x.opened.Close())
	}
	x.databases, x.opened = nil, nil
	return errors.Join(errs...)
}

func (x *stagedFolder) openTenant(ctx context.Context) (store.Tenant, error) {
	if err := x.close(); err != nil {
		return nil, err
	}
	t := &Tenant{name: x.info.Name, dir: x.dir, opts: x.s.opts}
	err := t.open(ctx)
	if err == nil && t.identity != x.info.Identity {
		err = damaged("its word is not that of its entry in %s", systemName)
	}
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	x.opened = t
	return t, nil
}

func (x *stagedFolder) openSystem(ctx context.Context) (store.System, error) {
	if err := x.close(); err != nil {
		return nil, err
	}
	d, err := openDatabase(ctx, filepath.Join(x.dir, systemName), runsSchema, modeWrite)
	if err != nil {
		return nil, err
	}
	s := relational.NewSystem(relational.SystemConfig{Database: d, Options: x.s.opts})
	x.opened = s
	return s, nil
}

// discard implements relational.Staged.Discard.
func (x *stagedFolder) discard() error {
	err := x.close()
	if x.lock == nil {
		return err
	}
	if !x.adopted {
		err = errors.Join(err, os.RemoveAll(x.dir))
	}
	// Whoever takes the lock of a file holds this lock, so that the file can be removed.
	all, lockErr := x.s.lockTenants(context.Background())
	if lockErr == nil {
		lockErr = errors.Join(x.lock.Unlock(), os.Remove(x.lock.Path()), all.Unlock())
	}
	x.lock = nil
	return errors.Join(err, lockErr)
}

// removeMoving removes what interrupted moves left. The caller holds the lock of tenants.
func (s *Store) removeMoving() error {
	entries, err := os.ReadDir(filepath.Join(s.dir, tenantsName))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), moving) {
			continue
		}
		path := filepath.Join(s.dir, tenantsName, strings.TrimSuffix(e.Name(), lockSuffix))
		lock := flock.New(path+lockSuffix, flock.SetPermissions(0o600))
		free, err := lock.TryLock()
		if err == nil && !free {
			if err := lock.Close(); err != nil {
				return err
			}
			continue
		}
		if err = errors.Join(err, os.RemoveAll(path), lock.Unlock(), os.RemoveAll(lock.Path())); err != nil {
			return err
		}
	}
	return nil
}

// Adopt implements relational.Mover.
func (m folderMover) Adopt(ctx context.Context, tenants []*relational.Staged, system *relational.Staged, b relational.Belongings) error {
	if system != nil {
		return wrap(m.adoptAll(ctx, tenants, system), "move to %s", m.s.dir)
	}
	if len(tenants) == 0 {
		return nil
	}
	err := m.s.changeTenants(ctx, tenants[0].Info.Name, func(sys store.System) error {
		infos, err := m.s.unplace(tenants)
		if err == nil {
			err = sys.(*relational.System).Take(ctx, infos, b)
		}
		if err != nil {
			for _, info := range infos {
				err = errors.Join(err, os.RemoveAll(m.s.unplaced(info)))
			}
			return err
		}
		return m.s.placeAll(infos)
	})
	return wrap(err, "move to %s", m.s.dir)
}

// adoptAll makes a staged system the store's, whose registry has entries of the tenants.
func (m folderMover) adoptAll(ctx context.Context, tenants []*relational.Staged, system *relational.Staged) (err error) {
	lock, err := m.s.lockTenants(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	if err := m.s.checkNew(ctx); err != nil {
		return err
	}
	x := system.Place.(*stagedFolder)
	if err := errors.Join(x.close(), syncDirectory(x.dir)); err != nil {
		return err
	}
	infos, err := m.s.unplace(tenants)
	if err != nil {
		return err
	}
	if err := os.Link(filepath.Join(x.dir, systemName), filepath.Join(m.s.dir, systemName)); err != nil {
		return err
	}
	if err := syncDirectory(m.s.dir); err != nil {
		return err
	}
	return m.s.placeAll(infos)
}

// unplace closes tenants and gives their folders the names that those of new tenants have before their
// entries are stored.
func (s *Store) unplace(tenants []*relational.Staged) (infos []store.TenantInfo, err error) {
	for _, t := range tenants {
		x := t.Place.(*stagedFolder)
		err := errors.Join(x.close(), syncDirectory(x.dir))
		if err == nil {
			err = os.Rename(x.dir, s.unplaced(t.Info))
		}
		if err != nil {
			return infos, err
		}
		x.adopted, infos = true, append(infos, t.Info)
	}
	return infos, syncDirectory(filepath.Join(s.dir, tenantsName))
}

func (s *Store) placeAll(infos []store.TenantInfo) error {
	for _, info := range infos {
		if err := s.placeTenant(info); err != nil {
			return err
		}
	}
	return nil
}
