package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	mssql "github.com/microsoft/go-mssqldb"
	"github.com/microsoft/go-mssqldb/msdsn"
	sqlite "modernc.org/sqlite"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/source/sqldb/rdsdata"
)

// A dialect is how a database writes names and parameters.
type dialect struct {
	address     string // of the database, without user and options
	open, close string // quotes around a name
	parameter   string // the first one
	snapshot    bool   // a listing is one transaction, which ends before its rows are used
}

func (d dialect) quote(name string) string { return d.open + name + d.close }

func (d dialect) list(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = d.quote(name)
	}
	return strings.Join(quoted, ", ")
}

// absolute makes the path of an SQLite database absolute.
func absolute(target string) (string, error) {
	file, ok := strings.CutPrefix(target, "sqlite:")
	if !ok {
		return target, nil
	}
	file, err := filepath.Abs(strings.TrimPrefix(file, "//"))
	return "sqlite:" + file, err
}

// A dialFunc connects to an address, whose host it resolves.
type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// A hostDialer is an mssql.HostDialer, so that the driver does not resolve the host.
type hostDialer struct {
	dial dialFunc
	host string
}

func (h hostDialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return h.dial(ctx, network, address)
}

func (h hostDialer) HostName() string { return h.host }

// connectTimeout bounds how long a connection takes to open.
const connectTimeout = 20 * time.Second

// connect returns the database of a target. It does not connect yet.
func connect(target, password string, dial dialFunc) (*sql.DB, dialect, error) {
	if file, ok := strings.CutPrefix(target, "sqlite:"); ok && file != "" {
		return connectSQLite(file)
	}
	u, err := url.Parse(target)
	if err != nil || u.Host == "" || strings.Trim(u.Path, "/") == "" && u.Scheme != "sqlserver" {
		return nil, dialect{}, fmt.Errorf("the target is no address of a database, such as postgres://USER@HOST/DB: %w", assay.ErrInvalid)
	}
	if _, has := u.User.Password(); has || hasPassword(u.Query()) {
		return nil, dialect{}, fmt.Errorf("the target has a password in it; use the credential password: %w", assay.ErrInvalid)
	}
	address := u.Scheme + "://" + u.Host + u.Path
	switch u.Scheme {
	case "postgres", "postgresql":
		return connectPostgres(u, password, address, dial)
	case "mysql":
		return connectMySQL(u, password, address, dial)
	case "sqlserver":
		return connectSQLServer(u, password, address, dial)
	}
	return nil, dialect{}, fmt.Errorf("%s is no kind of database that is known: %w", u.Scheme, assay.ErrInvalid)
}

// hasPassword reports whether options of a database contain a password, as "password" and
// "sslpassword" of PostgreSQL and "pwd" of SQL Server do.
func hasPassword(options url.Values) bool {
	for name := range options {
		name = strings.ToLower(name)
		if strings.Contains(name, "password") || name == "pwd" {
			return true
		}
	}
	return false
}

func connectSQLite(file string) (*sql.DB, dialect, error) {
	path := filepath.ToSlash(strings.TrimPrefix(file, "//"))
	u := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: "mode=ro&_pragma=query_only(1)&_pragma=busy_timeout(10000)"}
	c, err := sqlite.NewConnector(u.String())
	if err != nil {
		return nil, dialect{}, fmt.Errorf("target: %w: %w", err, assay.ErrInvalid)
	}
	return sql.OpenDB(c), dialect{address: "sqlite:" + path, open: `"`, close: `"`, parameter: "?"}, nil
}

func connectPostgres(u *url.URL, password, address string, dial dialFunc) (*sql.DB, dialect, error) {
	config, err := pgx.ParseConfig(u.String())
	if err != nil {
		return nil, dialect{}, fmt.Errorf("target: %w: %w", err, assay.ErrInvalid)
	}
	config.Password = password
	config.ConnectTimeout = connectTimeout
	config.DialFunc = pgconn.DialFunc(dial)
	config.LookupFunc = func(_ context.Context, host string) ([]string, error) { return []string{host}, nil } // dial resolves it
	config.RuntimeParams["default_transaction_read_only"] = "on"
	config.RuntimeParams["application_name"] = "assay"
	return stdlib.OpenDB(*config), dialect{address: address, open: `"`, close: `"`, parameter: "$1"}, nil
}

func connectMySQL(u *url.URL, password, address string, dial dialFunc) (*sql.DB, dialect, error) {
	config := mysql.NewConfig()
	config.User, config.Passwd = u.User.Username(), password
	config.Net, config.Addr, config.DBName = "tcp", u.Host, strings.Trim(u.Path, "/")
	if u.Port() == "" {
		config.Addr = net.JoinHostPort(u.Hostname(), "3306")
	}
	config.ParseTime, config.Timeout, config.DialFunc = true, connectTimeout, dial
	config.TLSConfig = u.Query().Get("tls")
	c, err := mysql.NewConnector(config)
	if err != nil {
		return nil, dialect{}, fmt.Errorf("target: %w: %w", err, assay.ErrInvalid)
	}
	return sql.OpenDB(c), dialect{address: address, open: "`", close: "`", parameter: "?"}, nil
}

func connectSQLServer(u *url.URL, password, address string, dial dialFunc) (*sql.DB, dialect, error) {
	config, err := msdsn.Parse(u.String())
	if err != nil {
		return nil, dialect{}, fmt.Errorf("target: %w: %w", err, assay.ErrInvalid)
	}
	if database := strings.Trim(u.Path, "/"); config.Database == "" {
		config.Database, config.Instance = database, ""
	}
	config.Password, config.DialTimeout = password, connectTimeout
	config.ReadOnlyIntent = true
	connector := mssql.NewConnectorConfig(config)
	connector.Dialer = hostDialer{dial, config.Host}
	return sql.OpenDB(connector), dialect{address: address, open: "[", close: "]", parameter: "@p1"}, nil
}

// isRefusal reports whether the database refused the user or the password.
//
// Sources: PostgreSQL, appendix A, class 28 and 42501; MySQL, error 1045 and 1142; SQL Server, 18456
// and 229.
func isRefusal(err error) bool {
	var pg *pgconn.PgError
	var my *mysql.MySQLError
	var ms mssql.Error
	switch {
	case errors.Is(err, rdsdata.ErrDenied):
		return true
	case errors.As(err, &pg):
		return strings.HasPrefix(pg.Code, "28") || pg.Code == "42501"
	case errors.As(err, &my):
		return my.Number == 1045 || my.Number == 1142
	case errors.As(err, &ms):
		return ms.Number == 18456 || ms.Number == 229
	}
	return false
}

// isConnection reports whether the connection failed, rather than the query.
func isConnection(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return strings.HasPrefix(pg.Code, "08") || strings.HasPrefix(pg.Code, "53") || strings.HasPrefix(pg.Code, "57P")
	}
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, mysql.ErrInvalidConn)
}
