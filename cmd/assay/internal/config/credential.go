package config

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/assay-rag/assay/internal/secret"
)

// The tags of a credential in the file. Without a tag it would be the credential itself, which is
// refused.
const (
	tagEnv     = "!env"
	tagFile    = "!file"
	tagCommand = "!command"
)

// tagHint is the remedy for a credential in the file.
const tagHint = "write where it is read from: !env NAME, !file PATH or !command \"PROGRAM ARGUMENT\""

// tag returns the tag of the value at a path of keys, or "".
func (f *file) tag(path ...string) string {
	if t, ok := f.at(path...).(*ast.TagNode); ok {
		return t.Start.Value
	}
	return ""
}

// credential reads the credential at a path of the file. A command is not run yet; it is returned
// for runCommand.
func (c *Config) credential(value string, path ...string) (k Key, command string, err error) {
	switch tag := c.file.tag(path...); tag {
	case tagEnv:
		return c.fromEnv(value, path...)
	case tagFile:
		k, err = c.fromKeyFile(value, path...)
		return k, "", err
	case tagCommand:
		if err := c.checkOwn(path...); err != nil {
			return Key{}, "", err
		}
		if words, err := secret.Words(value); err != nil || len(words) == 0 {
			return Key{}, "", c.file.wrong(path, "as in !command \"pass show openai\"", "the command is empty or a quote in it is not closed")
		}
		return Key{}, value, nil
	case "":
		if name, ok := strings.CutPrefix(value, "$"); ok && variableForm.MatchString(name) {
			return c.fromEnv(name, path...)
		}
		return Key{}, "", c.file.wrong(path, tagHint, "a credential must not be in the file itself")
	default:
		return Key{}, "", c.file.wrong(path, tagHint, "unknown tag %s", tag)
	}
}

func (c *Config) fromEnv(name string, path ...string) (Key, string, error) {
	if likeKey(name) || !variableForm.MatchString(name) {
		return Key{}, "", c.file.wrong(path, "write the name, as in !env OPENAI_API_KEY", "want the name of an environment variable, not a key")
	}
	return newKey(strings.TrimSpace(c.getenv(name)), name), "", nil
}

// fromKeyFile reads a file that holds a credential alone.
func (c *Config) fromKeyFile(name string, path ...string) (Key, error) {
	name = c.beside(name)
	data, err := os.ReadFile(name)
	if err != nil {
		return Key{}, c.file.wrong(path, "", "cannot read %s: %s", shown(name), reason(err))
	}
	k := newKey(strings.TrimSpace(string(data)), "key_file "+name)
	c.Secrets.add(k.Secret)
	if k.Empty() || strings.ContainsAny(k.Reveal(), "\r\n") {
		return Key{}, c.file.wrong(path, "the file must contain only the key", "%s does not contain exactly one line", shown(name))
	}
	return k, nil
}

// checkOwn refuses commands in a file that other users can change, since they would run as this
// user.
func (c *Config) checkOwn(path ...string) error {
	info, err := os.Stat(c.Path)
	if err != nil {
		return c.file.wrong(path, "", "cannot read the permissions of the file: %s", reason(err))
	}
	if info.Mode().Perm()&0o022 != 0 && os.PathSeparator == '/' {
		return c.file.wrong(path, "run: chmod go-w "+c.Path, "other users can change this file, so its commands are not run")
	}
	return nil
}

// runCommand runs the command that prints a credential, once.
func (c *Config) runCommand(command string, path ...string) (Key, error) {
	s, err := secret.Command(context.Background(), command)
	if err != nil {
		return Key{}, c.file.wrong(path, "", "%s", withoutKind(err))
	}
	c.Secrets.add(s)
	return Key{s, fmt.Sprintf("a command in %s:%d", c.Path, c.file.line(path...))}, nil
}

// runWebCommand runs the command that prints the key of the web search, once.
func (c *Config) runWebCommand() (err error) {
	c.running.Lock()
	defer c.running.Unlock()
	if c.webCommand == "" {
		return nil
	}
	if c.Web.Key, err = c.runCommand(c.webCommand, "web", "key"); err == nil {
		c.webCommand = ""
	}
	return err
}

// readCommands checks the section commands.
func (c *Config) readCommands() error {
	for name, line := range c.file.Commands {
		path := []string{"commands", name}
		if !providerName.MatchString(name) {
			return c.file.wrong(path, "use lower-case letters, digits, - and _", "invalid name")
		}
		if err := c.checkOwn(path...); err != nil {
			return err
		}
		if words, err := secret.Words(line); err != nil || len(words) == 0 {
			return c.file.wrong(path, "as in "+name+": pass show sharepoint", "the command is empty or a quote in it is not closed")
		}
	}
	return nil
}

// Command runs a command of the section commands, and returns the credential that it prints. A data
// directory stores only the name of a source's command, so that a copied directory cannot run programs.
func (c *Config) Command(name string) (string, error) {
	line, ok := c.file.Commands[name]
	if !ok {
		return "", &Error{Where: cmp.Or(c.Path, "the configuration"), Detail: fmt.Sprintf("there is no command %s", shown(name)), Hint: "as in commands: {" + name + ": pass show " + name + "}"}
	}
	k, err := c.runCommand(line, "commands", name)
	return k.Reveal(), err
}
