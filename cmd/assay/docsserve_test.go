package main

import (
	"bufio"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/assay-rag/assay/client"
)

// serveAddress is the address of assay serve in the docs, and serveName the same with a name.
const (
	serveAddress = "127.0.0.1:8484"
	serveName    = "localhost:8484"
)

// A docServer is assay serve, started by a block of a document.
type docServer struct {
	cmd     *exec.Cmd
	address string
	ended   chan struct{}
	log     strings.Builder // read after ended
}

// serve starts the server of a block, instead of the one before it, and waits until it is ready.
func (s *docShell) serve(t *testing.T, b docBlock) {
	t.Helper()
	if s == nil {
		return
	}
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	commands := b.commands()
	if len(commands) != 1 {
		t.Fatalf("line %d: %d commands, want one", b.line, len(commands))
	}
	s.server.stop(t)
	s.server = startDocServer(t, s, commands[0].command)
	t.Cleanup(func() { s.server.stop(t) })
}

// startDocServer starts a command that serves, and waits until it is ready.
func startDocServer(t *testing.T, s *docShell, command string) *docServer {
	t.Helper()
	d := &docServer{address: "127.0.0.1:0", ended: make(chan struct{})}
	d.cmd = exec.Command("sh", "-c", "exec "+d.replace(command))
	d.cmd.Dir, d.cmd.Env = s.dir, append(s.env, "ASSAY_LISTEN="+d.address)
	out, err := d.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	up := make(chan string, 1)
	go func() {
		defer close(d.ended)
		serving := false
		for lines := bufio.NewScanner(out); lines.Scan(); {
			d.log.WriteString(lines.Text() + "\n")
			if _, url, ok := strings.Cut(lines.Text(), "url=http://"); ok && !serving && strings.Contains(lines.Text(), "assay serves") {
				serving = true
				address, _, _ := strings.Cut(url, " ")
				up <- address
			}
		}
		if !serving {
			up <- ""
		}
	}()
	if d.address = <-up; d.address == "" {
		t.Fatalf("%s ended: %v\n%s", command, d.cmd.Wait(), d.log.String())
	}
	c, err := client.New("http://"+d.address, client.Options{Retries: 60})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.ServiceReady(t.Context()); err != nil {
		t.Error(err)
	}
	return d
}

// replace returns a command with the address of the server instead of the documented one.
func (d *docServer) replace(command string) string {
	if d == nil {
		return command
	}
	if command == "assay health" {
		command += " http://" + serveAddress
	}
	return strings.NewReplacer(serveAddress, d.address, serveName, d.address).Replace(command)
}

// stop ends the server as an administrator does.
func (d *docServer) stop(t *testing.T) {
	t.Helper()
	if d == nil || d.cmd.ProcessState != nil {
		return
	}
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	<-d.ended
	if err := d.cmd.Wait(); err != nil {
		t.Errorf("the server ended: %v\n%s", err, d.log.String())
	}
}
