//go:build unix

package sqlite

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// becomeOther makes the command run as an unprivileged user if the test runs as root.
func becomeOther(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if os.Geteuid() == 0 {
		const nobody = 65534
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
}
