package config

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/parser"

	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/internal/index/shared"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/safeyaml"
	"github.com/assay-rag/assay/internal/secret"
)

// The variables that take precedence over the sections store, index and queue.
const (
	storeVariable = "ASSAY_STORE"
	queueVariable = "ASSAY_QUEUE"
)

// StoreQueue is the value of the queue's address that means the store's database.
const StoreQueue = "store"

// A Store says where documents and runs are.
type Store struct {
	// URL is the address of a PostgreSQL database without its password; empty: a data directory.
	URL      string
	Password Key // empty: PGPASSWORD, PGPASSFILE or none

	Index   string         // OwnIndex, PGVector or OpenSearch
	Cluster shared.Cluster // of OpenSearch

	// Queue is the address of the database of the queue, or StoreQueue; empty: there is no queue.
	Queue         string
	QueuePassword Key
	SyncEvery     time.Duration // how often workers sync the sources; 0: never

	Secrets *Secrets // the passwords
}

// DefaultSyncEvery is the default of Store.SyncEvery.
const DefaultSyncEvery = 15 * time.Minute

// Remote reports whether the store is a database.
func (s Store) Remote() bool { return s.URL != "" }

// Address returns the address with which a database is opened. It contains the password.
func (s Store) Address() string { return withPassword(s.URL, s.Password) }

// QueueAddress returns the address of the queue's database, as Address does; empty: there is none.
func (s Store) QueueAddress() string {
	if s.Queue == StoreQueue {
		return s.Address()
	}
	return withPassword(s.Queue, s.QueuePassword)
}

func withPassword(address string, password Key) string {
	u, err := url.Parse(address)
	if err != nil || password.Empty() {
		return address
	}
	u.User = url.UserPassword(u.User.Username(), password.Reveal())
	return u.String()
}

// StoreFlags are the flags --store, --index and --queue; empty: not given.
type StoreFlags struct{ Store, Index, Queue string }

// fileStore and fileQueue are the sections store and queue. docs/scale.md describes each key.
type fileStore struct {
	URL      string `yaml:"url"`
	Password string `yaml:"password"`
}

type fileQueue struct {
	URL       string `yaml:"url"`
	Password  string `yaml:"password"`
	SyncEvery string `yaml:"sync_every"`
}

// LoadStore reads the sections store, index and queue alone, so that an error elsewhere in the file does not
// keep a command from its data.
func LoadStore(s Sources, flags StoreFlags) (Store, error) {
	c := &Config{getenv: s.Getenv, offline: s.Offline, file: &file{}}
	path, err := s.path()
	if err != nil {
		return Store{}, err
	}
	if path != "" {
		c.Path = path
		if c.file, err = readSections(path); err != nil {
			return Store{}, err
		}
	}
	if err := c.egress(); err != nil {
		return Store{}, err
	}
	return c.store(flags)
}

// readSections reads the sections store, index, queue and egress of a file and ignores the others.
func readSections(path string) (*file, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, &Error{Where: path, Detail: "cannot read it: " + reason(err)}
	}
	f := &file{path: path}
	if !sectionOfStore.MatchString(string(data)) {
		return f, nil
	}
	if err := safeyaml.Check(data); err != nil {
		return nil, &Error{Where: path, Detail: "is not a valid configuration file: " + err.Error()}
	}
	tree, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, f.syntax(err)
	}
	for _, d := range tree.Docs {
		if d.Body != nil && f.root == nil {
			f.root = d.Body
		}
	}
	var in struct {
		Store  *fileStore  `yaml:"store"`
		Index  *fileIndex  `yaml:"index"`
		Queue  *fileQueue  `yaml:"queue"`
		Egress *fileEgress `yaml:"egress"`
	}
	if err := yaml.Unmarshal(data, &in); err != nil {
		return nil, f.syntax(err)
	}
	f.Store, f.Index, f.Queue, f.Egress = in.Store, in.Index, in.Queue, in.Egress
	return f, nil
}

// sectionOfStore matches a file that may have a section that LoadStore reads.
var sectionOfStore = lazyregexp.New(`store|index|queue|egress`)

// checkStore checks the sections store, index and queue of the file.
func (c *Config) checkStore() error {
	_, err := c.store(StoreFlags{})
	return err
}

// store reads the sections store, index and queue, and what takes precedence over them.
func (c *Config) store(flags StoreFlags) (Store, error) {
	s := Store{Secrets: &c.Secrets, Index: OwnIndex, SyncEvery: DefaultSyncEvery}
	in, queue := c.file.Store, c.file.Queue
	if in == nil {
		in = &fileStore{}
	}
	if queue == nil {
		queue = &fileQueue{}
	}
	var err error
	if s.URL, s.Password, err = c.database(flags.Store, "--store", storeVariable, in.URL, in.Password, "store"); err != nil {
		return s, err
	}
	if s.URL == Local {
		s.URL, s.Password = "", Key{}
	}
	if s.Queue, s.QueuePassword, err = c.database(flags.Queue, "--queue", queueVariable, queue.URL, queue.Password, "queue"); err != nil {
		return s, err
	}
	if s.Queue == StoreQueue && !s.Remote() {
		return s, &Error{Where: "queue", Detail: "the store is a data directory, which has no queue", Hint: "name a database with --store or --queue, as in postgres://assay@db.example.com/assay"}
	}
	if err := c.index(&s, flags.Index); err != nil {
		return s, err
	}
	if queue.SyncEvery == "never" {
		s.SyncEvery = 0
		return s, nil
	}
	every, err := c.file.duration(queue.SyncEvery, "queue", "sync_every")
	if err != nil {
		return s, err
	}
	s.SyncEvery = cmp.Or(every, DefaultSyncEvery)
	if s.SyncEvery < engine.MinSyncInterval {
		return s, c.file.wrong([]string{"queue", "sync_every"}, "as in 15m, or never", "less than %v", engine.MinSyncInterval)
	}
	return s, nil
}

// database reads the address of a database from a flag, a variable or a section of the file. Only the
// variable may contain a password.
func (c *Config) database(flag, flagName, variable, inFile, password, section string) (string, Key, error) {
	address, where := flag, flagName
	if address == "" {
		address, where = c.getenv(variable), variable
	}
	var key Key
	if address == "" {
		address, where = inFile, ""
		if password != "" {
			var command string
			var err error
			if key, command, err = c.credential(password, section, "password"); err == nil && command != "" {
				key, err = c.runCommand(command, section, "password")
			}
			if err != nil {
				return "", Key{}, err
			}
		}
	}
	wrong := func(hint, detail string) error {
		if where == "" {
			return c.file.wrong([]string{section, "url"}, hint, "%s", detail)
		}
		return &Error{Where: where, Detail: detail, Hint: hint}
	}
	word := map[string]string{"store": Local, "queue": StoreQueue}[section] // that stands for an address
	if address == "" || address == word {
		return address, key, nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" || u.Host == "" {
		return "", Key{}, wrong("as in postgres://assay@db.example.com/assay", "want the URL of a PostgreSQL database")
	}
	if u.Query().Has("password") || u.Query().Has("sslpassword") {
		return "", Key{}, wrong("", "a password must not be a parameter of the URL")
	}
	if c.Egress.Offline() && !onThisMachine(address) {
		return "", Key{}, wrong("name a database on this machine, or leave offline out", "the database is not on this machine, and offline nothing leaves it")
	}
	if inURL, ok := u.User.Password(); ok {
		if where != variable {
			return "", Key{}, wrong(fmt.Sprintf("set PGPASSWORD, PGPASSFILE or %s, or password in the section %s of the configuration", variable, section), "other users could read a password here")
		}
		key = newKey(inURL, variable)
		u.User = url.User(u.User.Username())
	}
	c.Secrets.add(key.Secret, secret.New(url.QueryEscape(key.Reveal())), secret.New(url.PathEscape(key.Reveal())), secret.New(c.getenv("PGPASSWORD")))
	return u.String(), key, nil
}
