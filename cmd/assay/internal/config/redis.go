package config

import (
	"fmt"
	"net/url"

	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/provider/redis"
)

// A Redis is a server in which several servers share limits of requests and vectors.
type Redis struct {
	URL      string // without the password; empty: none
	Password Key
	Key      Key // empty: vectors are not shared
}

// Shares names what is shared, for people.
func (r Redis) Shares() string {
	if r.Key.Empty() {
		return "limits of requests"
	}
	return "limits of requests, vectors of passages"
}

// fileRedis is the section redis. docs/scale.md describes each key.
type fileRedis struct {
	URL      string `yaml:"url"`
	Password string `yaml:"password"`
	Key      string `yaml:"key"`
}

// redis reads the section redis.
func (c *Config) redis() error {
	in := c.file.Redis
	if in == nil {
		return nil
	}
	path := []string{"redis", "url"}
	u, err := url.Parse(in.URL)
	if err != nil {
		return c.file.wrong(path, "as in rediss://cache.example.com:6379", "want the URL of a Redis server")
	}
	if _, ok := u.User.Password(); ok {
		return c.file.wrong(path, "set password in the same section", "other users could read a password here")
	}
	if redis.CheckURL(in.URL) != nil {
		return c.file.wrong(path, "as in rediss://cache.example.com:6379", "want the URL of a Redis server")
	}
	if c.Egress.Offline() && !isLoopback(u.Hostname()) {
		return c.file.wrong(path, "", "offline, only a server on this machine can be used")
	}
	if in.Password != "" && u.Scheme == "redis" && !isLoopback(u.Hostname()) {
		return c.file.wrong(path, "as in rediss://"+u.Host, "the password would be sent without encryption")
	}
	c.Redis.URL = in.URL
	if c.Redis.Password, err = c.redisSecret(in.Password, "password"); err != nil {
		return err
	}
	if c.Redis.Key, err = c.redisSecret(in.Key, "key"); err != nil {
		return err
	}
	if n := len(c.Redis.Key.Reveal()); in.Key != "" && n < redis.MinKey {
		return c.file.wrong([]string{"redis", "key"}, "make one with: openssl rand -hex 32", "has %d characters, want at least %d", n, redis.MinKey)
	}
	return nil
}

// redisSecret reads a credential of the section redis. One that is named must exist.
func (c *Config) redisSecret(value, name string) (Key, error) {
	if value == "" {
		return Key{}, nil
	}
	key, command, err := c.credential(value, "redis", name)
	if err == nil && command != "" {
		key, err = c.runCommand(command, "redis", name)
	}
	if err != nil {
		return Key{}, fmt.Errorf("redis: %w", err)
	}
	if key.Empty() {
		return Key{}, c.file.wrong([]string{"redis", name}, "", "is empty")
	}
	c.Secrets.add(key.Secret, secret.New(url.QueryEscape(key.Reveal())))
	return key, nil
}
