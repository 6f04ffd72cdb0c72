package parse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// A legacyFormat is a format that LibreOffice converts to one that this package parses.
type legacyFormat struct {
	name  string // for people
	to    string // the extension of the converted file
	parse func(*source, *builder) bool
}

var legacyFormats = map[string]legacyFormat{
	"doc":    {"the old Word format", kindDOCX, parseDOCX},
	"xls":    {"the old Excel format", kindXLSX, parseXLSX},
	"ppt":    {"the old PowerPoint format", kindPPTX, parsePPTX},
	kindXLSB: {"the binary Excel format", kindXLSX, parseXLSX},
}

// isLegacy returns the detection of a format of old.
func isLegacy(kind string) func(*source) bool {
	return func(src *source) bool {
		f := src.officeFile()
		return f.legacy == kind || f.kind == kind
	}
}

// parseLegacy returns the parser of a format that soffice converts. Without soffice the error is an
// ErrNeedsProgram.
func parseLegacy(kind string) func(*source, *builder) bool {
	return func(src *source, b *builder) bool {
		format := legacyFormats[kind]
		file := src.officeFile()
		if file.locked {
			b.err = fmt.Errorf("it is in %s and encrypted; save it without a password: %w", format.name, ErrPassword)
			return true
		}
		data := src.data
		if file.data != nil {
			data = file.data
		}
		converted, err := convertOffice(b.ctx, data, kind, format)
		if err != nil {
			b.err = err
			return true
		}
		b.step()
		inner := newSource(Input{Name: "converted." + format.to, Data: converted})
		if found := inner.officeFile(); found.kind != format.to {
			b.err = fmt.Errorf("soffice wrote no %s file: %w", format.to, errors.Join(found.err, ErrDamaged))
			return true
		}
		return format.parse(inner, b)
	}
}

// Limits of a conversion.
const (
	convertTime  = 25 * time.Second // less than a parse worker has, so that its processes are killed here
	maxConverted = 256 << 20
)

// convertOffice converts a document by LibreOffice in a folder and with a user profile of its own,
// which are removed.
func convertOffice(ctx context.Context, data []byte, kind string, format legacyFormat) (_ []byte, err error) {
	program, err := findOffice()
	if err != nil {
		return nil, fmt.Errorf("it is in %s; install LibreOffice (soffice) to read it: %w", format.name, ErrNeedsProgram)
	}
	folder, err := os.MkdirTemp("", "assay-office-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if err := writeProfile(filepath.Join(folder, "profile", "user")); err != nil {
		return nil, err
	}
	in := filepath.Join(folder, "in."+kind)
	if err := os.WriteFile(in, data, 0o600); err != nil {
		return nil, err
	}
	if err := runOffice(ctx, program, folder, in, format.to); err != nil {
		return nil, err
	}
	return readConverted(filepath.Join(folder, "out", "in."+format.to))
}

func findOffice() (string, error) {
	if program, err := exec.LookPath("soffice"); err == nil {
		return program, nil
	}
	return exec.LookPath("libreoffice")
}

// officeSettings forbid macros, links to other files and the network, and first-run dialogs.
const officeSettings = `<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry" xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
<item oor:path="/org.openoffice.Office.Common/Security/Scripting"><prop oor:name="MacroSecurityLevel" oor:op="fuse"><value>3</value></prop></item>
<item oor:path="/org.openoffice.Office.Common/Security/Scripting"><prop oor:name="DisableMacrosExecution" oor:op="fuse"><value>true</value></prop></item>
<item oor:path="/org.openoffice.Office.Common/Security/Scripting"><prop oor:name="DisableActiveContent" oor:op="fuse"><value>true</value></prop></item>
<item oor:path="/org.openoffice.Office.Common/Security/Scripting"><prop oor:name="BlockUntrustedRefererLinks" oor:op="fuse"><value>true</value></prop></item>
<item oor:path="/org.openoffice.Office.Writer/Content/Update"><prop oor:name="Link" oor:op="fuse"><value>0</value></prop></item>
<item oor:path="/org.openoffice.Office.Calc/Content/Update"><prop oor:name="Link" oor:op="fuse"><value>2</value></prop></item>
<item oor:path="/org.openoffice.Setup/Office"><prop oor:name="ooSetupInstCompleted" oor:op="fuse"><value>true</value></prop></item>
</oor:items>
`

func writeProfile(folder string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "registrymodifications.xcu"), []byte(officeSettings), 0o600)
}

// runOffice runs the conversion. Its process group is killed when ctx or the time ends.
func runOffice(ctx context.Context, program, folder, in, to string) error {
	limited, cancel := context.WithTimeout(ctx, convertTime)
	defer cancel()
	cmd := exec.CommandContext(limited, program,
		"-env:UserInstallation=file://"+filepath.ToSlash(filepath.Join(folder, "profile")),
		"--headless", "--norestore", "--nolockcheck", "--nodefault", "--nologo",
		"--convert-to", to, "--outdir", filepath.Join(folder, "out"), in)
	cmd.Dir = folder
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + folder, "TMPDIR=" + folder, "LC_ALL=C.UTF-8", "SAL_USE_VCLPLUGIN=svp"}
	if root := os.Getenv("SystemRoot"); root != "" {
		cmd.Env = append(cmd.Env, "SystemRoot="+root, "TEMP="+folder, "TMP="+folder)
	}
	inGroup(cmd)
	dieWithParent(cmd)
	runtime.LockOSThread() // with whose end the program would end
	defer runtime.UnlockOSThread()
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() != nil:
		return fmt.Errorf("soffice took more than %s: %w", convertTime, ErrLimit)
	case err != nil:
		return fmt.Errorf("soffice cannot convert it: %v: %w", err, ErrDamaged)
	}
	return nil
}

func readConverted(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("soffice cannot convert it: %w", ErrDamaged)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxConverted+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxConverted {
		return nil, fmt.Errorf("converted, it has more than %d MiB: %w", maxConverted>>20, ErrLimit)
	}
	return data, nil
}
